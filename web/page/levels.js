// The levels of an LSM tree that share a budget.
let tree = [];
const LEVELS = '1M,10M,100M,1G', BUDGET = '1 GiB';

// As the tool writes levels: KEYS, =PRESENT unless it is none, and xRUNS unless it is one.
const levelText = level =>
  level.keys.replace(/[\s,]/g, '') +
  (/^0? ?%?$/.test(level.present) ? '' : `=${level.present.replace(/\s/g, '')}`) +
  (level.runs === '1' ? '' : `x${level.runs}`);
const levelOf = text => {
  const [rest, runs] = text.split('x');
  const [keys, present] = rest.split('=');
  return { keys, runs: runs ?? '1', present: present ?? '0%' };
};

const levelsState = () => ({ levels: tree.map(levelText).join(','), budget: $('budget').value });

function readLevels(query) {
  $('budget').value = query.get('budget') ?? ($('budget').value || BUDGET);
  const levels = query.get('levels');
  if (levels !== null || !tree.length)
    tree = (levels || LEVELS).split(',').slice(0, 64).map(levelOf);
  // On a narrow screen it is long.
  if (innerWidth > 736 || (levels ?? LEVELS) !== LEVELS) $('levels-view').open = true;
  drawLevels();
}

function drawLevels() {
  const heads = ['', 'keys', 'runs', 'found', 'bits per key', 'pass', 'wasted reads'].map(
    (head, at) => h('span', { class: at > 3 ? 'number' : '' }, head),
  );
  const rows = tree.map((level, at) => {
    const input = (name, label, term) =>
      h(
        'label', {},
        h(
          'span', { class: 'term', 'aria-hidden': 'true' },
          name === 'keys' ? `level ${at}: keys` : term,
        ),
        h('input', {
          value: level[name], spellcheck: 'false', 'aria-label': `${label} of level ${at}`,
          'data-field': `${at}.${name}`,
          oninput: event => {
            level[name] = event.target.value;
            showLevels();
          },
        }),
      );
    const cell = name =>
      h(
        'span', { class: 'number' }, h('span', { class: 'term' }, name),
        h('span', { 'data-result': `${at}.${name}` }),
      );
    return h(
      'div', { class: 'level' }, h('span', { class: 'place' }, String(at)),
      input('keys', 'Keys', 'keys'), input('runs', 'Sorted runs', 'runs'),
      input('present', 'Lookups that find their key', 'found'), cell('bits per key'), cell('pass'),
      cell('wasted reads'),
      h(
        'button',
        {
          type: 'button', 'aria-label': `Remove level ${at}`, disabled: tree.length === 1,
          onclick: () => {
            tree.splice(at, 1);
            drawLevels();
            showLevels();
            $('add-level').focus();
          },
        },
        '×',
      ),
    );
  });
  $('levels').replaceChildren(
    h('div', { class: 'level head', 'aria-hidden': 'true' }, ...heads), ...rows,
  );
}

function showLevels() {
  const budget = $('budget').value;
  const answer = filters.call('plan_levels', {
    budget,
    ...Object.fromEntries(
      tree.flatMap((level, at) => [
        [`${at}.keys`, level.keys], [`${at}.runs`, level.runs],
        [`${at}.present`, level.present || '0'],
      ]),
    ),
  });
  $('budget').setAttribute('aria-invalid', String(answer.field === 'budget'));
  for (const input of $('levels').querySelectorAll('input'))
    input.setAttribute('aria-invalid', String(input.dataset.field === answer.field));
  const [at, name] = (answer.field ?? '').split('.');
  $('levels-problem').textContent = !answer.error
    ? ''
    : name
      ? `Level ${at}, ${name === 'present' ? 'found' : name}: ${answer.error}`
      : answer.error;
  $('levels-view').classList.toggle('stale', !!answer.error);
  if (answer.error) return;
  const [planned, uniform] = answer.plans;
  planned.levels.forEach((level, at) => {
    const put = (name, text) => {
      $('levels').querySelector(`[data-result="${at}.${name}"]`).textContent = text;
    };
    put('bits per key', level.skipped ? 'no filter' : level.bits_per_key.toFixed(2));
    put('pass', level.skipped ? level.skipped : percent(level.false_positive_rate));
    put('wasted reads', significant(level.expected_wasted_reads));
  });
  const [own, same] = [planned.expected_wasted_reads, uniform.expected_wasted_reads];
  const bits = uniform.levels.find(level => !level.skipped)?.bits_per_key;
  $('levels-sentence').textContent =
    `${size(planned.stored_bytes)} in all, ` +
    `${significant(own)} wasted reads per lookup of an absent key` +
    (bits && same > own
      ? `. The same ${bits.toFixed(1)} bits per key for every level waste ` +
        `${significant(same)}: ${significant(same / own, 2)} times as many.`
      : '.') +
    (planned.stored_bytes < 0.9 * answer.budget_bytes
      ? ' The rest of the memory is not used: no filter takes more than 100 bits per key, and ' +
        'a level without filter none.'
      : '');
  const text = tree.map(levelText).join(',');
  $('levels-code').replaceChildren(
    snippet('Command line', `blocked-bloom plan --levels ${text} --budget ${answer.budget_bytes}`),
  );
  writeSize();
}

$('budget').addEventListener('input', () => showLevels());
$('add-level').addEventListener('click', () => {
  tree.push({ keys: tree.length ? tree[tree.length - 1].keys : '1M', runs: '1', present: '0%' });
  drawLevels();
  showLevels();
  $('levels').querySelector(`[data-field="${tree.length - 1}.keys"]`).focus();
});
