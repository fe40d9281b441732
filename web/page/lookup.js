// The view `lookup`: keys in the open file.
const KEY_FORMS = {
  text: 'Text', trimmed: 'trimmed: text without blanks and quotes around it',
  hex: 'Hex digits', uuid: 'UUIDs',
};
for (const [order, endian] of [['', 'little-endian'], ['-be', 'big-endian']])
  for (const sign of ['', 'u'])
    for (const bits of [64, 32, 16, 8]) {
      const name = `${sign}int${bits}${order}`;
      KEY_FORMS[name] = `${name}: ${sign && 'unsigned '}integers of ${bits} bits, ${endian}`;
    }
const TYPES = ['int32', 'int64', 'float', 'double', 'byte-array', 'fixed-len-byte-array', 'int96'];
const ANSWERS_SHOWN = 1000, PROBES_SHOWN = 8;
let lookupOptions = {};
// Whether the module has accepted the options, or why it refused them. Lookups wait until it has.
let isChosen = false, refused = null;

function noLookups() {
  $('no-file').hidden = false;
  $('lookup-form').hidden = true;
}

function allowLookups() {
  const { format, columns } = current.description;
  $('no-file').hidden = true;
  $('lookup-form').hidden = false;
  $('lookup-file').replaceChildren('In ', h('b', {}, current.name), `, ${FORMATS[format]}.`);
  lookupOptions = { keys: 'text' };
  const isTyped = ['parquet', 'parquet-filter', 'spark'].includes(format);
  const set = name => event => { lookupOptions[name] = event.target.value; chooseLookup(); };
  const input = (id, label, hint, name) =>
    h(
      'div', { class: 'field' }, h('label', { for: id }, label),
      h('input', { id, spellcheck: 'false', placeholder: hint, oninput: set(name) }),
    );
  const fields = [];
  if (format === 'parquet') {
    if (!columns.length) {
      $('lookup-options').replaceChildren(
        h('p', { class: 'note' }, 'No column of this file has a filter.'),
      );
      for (const id of ['answers', 'probes', 'lookup-warnings']) $(id).replaceChildren();
      return;
    }
    lookupOptions.column = columns[0];
    fields.push(
      select(
        'column', 'Column',
        columns.map(name => [name, name]),
        columns[0], set('column'),
      ),
      input('row-groups', 'Row groups', 'all', 'row_groups'),
    );
  }
  if (format === 'parquet-filter') {
    lookupOptions.type = 'byte-array';
    fields.push(
      select(
        'type', 'Type of the values',
        TYPES.map(type => [type, type]),
        'byte-array', set('type'),
      ),
    );
  }
  if (format === 'spark')
    fields.push(
      select(
        'type', 'Keys were put in as',
        [
          ['', 'strings or bytes'], ['int64', 'long'], ['int32', 'int'],
        ],
        '', set('type'),
      ),
    );
  if (['native', 'rocksdb-sst'].includes(format))
    fields.push(
      input(
        'prefix', 'Look up prefixes, by the rule',
        format === 'native' ? 'no: whole keys; or fixed:4' : 'no: whole keys; or own, fixed:4',
        'prefix',
      ),
    );
  const forms = isTyped
    ? [
        ['text', 'Text, or numbers in decimal'], ['hex', KEY_FORMS.hex],
      ]
    : Object.entries(KEY_FORMS);
  fields.push(select('key-form', 'Keys are', forms, 'text', set('keys')));
  $('lookup-options').replaceChildren(...fields);
  chooseLookup();
}

const FIELDS = { row_groups: 'row-groups', prefix: 'prefix', type: 'type', column: 'column' };
let choosing = 0;
async function chooseLookup() {
  const turn = ++choosing;
  isChosen = false;
  const answer = await worker.ask('choose', lookupOptions, reportProgress);
  if (turn !== choosing) return;
  $('progress').hidden = true;
  [isChosen, refused] = [true, answer.error];
  for (const input of $('lookup-options').querySelectorAll('input, select'))
    input.setAttribute('aria-invalid', String(!!refused && input.id === FIELDS[answer.field]));
  $('lookup-warnings').replaceChildren(
    ...(refused
      ? [h('p', { class: 'problem', role: 'alert' }, refused)]
      : (answer.warnings ?? []).map(text => h('p', { class: 'note' }, text))),
  );
  if (refused) {
    for (const id of ['answers', 'probes']) $(id).replaceChildren();
    performance.mark('looked-up');
  } else await lookUp();
}

let lookingUp = 0;
async function lookUp() {
  const turn = ++lookingUp, lines = $('typed').value;
  if (!isChosen) return; // choosing looks up what is typed
  if (refused) return performance.mark('looked-up');
  const answer = await worker.ask('lookup', { lines });
  if (turn !== lookingUp || !isChosen || refused) return;
  problem($('typed'), $('typed-problem'), answer.error);
  if (answer.error) {
    for (const id of ['answers', 'probes']) $(id).replaceChildren();
  } else {
    const keys = lines.replace(/\n$/, '').split('\n'), { answers } = answer;
    const maybe = [...answers].filter(one => one === '1').length;
    showAnswers({ ...answer, lines: keys, maybe, absent: answers.length - maybe });
    await showProbes(answers.length ? keys[keyAt(lines)] ?? keys[0] : null, turn);
  }
  // A later lookup may have begun meanwhile.
  if (turn === lookingUp) performance.mark('looked-up');
}

// The name of a part of the file: its row group, or its number.
function partName(part) {
  const { list, parts } = current.description;
  const group = list && list.lines.length === parts ? list.heads.indexOf('row group') : -1;
  return group < 0 ? `Filter ${part}` : `Row group ${list.lines[part][group]}`;
}

// The line that the cursor is in.
const keyAt = lines =>
  Math.min(
    lines.slice(0, $('typed').selectionStart).split('\n').length - 1,
    lines.replace(/\n$/, '').split('\n').length - 1,
  );

function showAnswers({ answers, lines, maybe, absent, warnings, row_groups: groups }) {
  if (!answers.length) return $('answers').replaceChildren();
  const all = maybe + absent;
  const parts = [];
  if (all > 1)
    parts.push(
      h(
        'p', { class: 'tally' }, h('span', {}, `${whole.format(absent)} certainly absent`),
        h('span', { class: 'maybe' }, `${whole.format(maybe)} maybe there`),
      ),
    );
  if (groups) parts.push(h('p', {}, rowGroupsText(groups)));
  parts.push(...warnings.map(text => h('p', { class: 'note' }, text)));
  parts.push(
    h(
      'ul', { class: `answers${answers.length > 12 ? ' many' : ''}` },
      ...[...answers]
        .slice(0, ANSWERS_SHOWN)
        .map((one, at) =>
          h(
            'li', {}, h('span', { class: 'key mono' }, ...shownKey(lines[at])),
            h(
              'span', { class: `verdict ${one === '1' ? 'maybe' : 'absent'}` },
              one === '1' ? 'maybe there' : 'certainly absent',
            ),
          ),
        ),
    ),
  );
  if (all > ANSWERS_SHOWN)
    parts.push(h('p', { class: 'hint' }, `The first ${ANSWERS_SHOWN} of ${whole.format(all)}.`));
  $('answers').replaceChildren(...parts);
}

// Shows a key with its leading and trailing blanks, which belong to the key, made visible.
function shownKey(key) {
  if (key === '') return ['(no bytes)'];
  const [, before, inner, after] = /^(\s*)([^]*?)(\s*)$/.exec(key);
  const blanks = text =>
    text
      ? [h('span', { class: 'blank', title: 'blanks, which are part of the key' },
          text.replace(/ /g, '·').replace(/\t/g, '→').replace(/[^·→]/g, '␣'))]
      : [];
  return [...blanks(before), inner, ...blanks(after)];
}

function rowGroupsText({ of, needed }) {
  if (!needed.length)
    return of === 1
      ? 'The row group does not have to be read.'
      : `None of the ${of} row groups has to be read.`;
  const names = `${needed.slice(0, 50).join(', ')}${needed.length > 50 ? ' …' : ''}`;
  const noun = `row group${needed.length === 1 ? '' : 's'}`;
  return `To be read: ${noun} ${names} (${needed.length} of ${of}; they are numbered from 0).`;
}

// A single key in its block: the bits that it has, and those that are set.
async function showProbes(line, turn) {
  const probes =
    line === null || line === undefined ? [] : await worker.ask('probes', { line: `${line}\n` });
  if (turn !== lookingUp) return;
  if (!Array.isArray(probes) || !probes.length) return $('probes').replaceChildren();
  const shown = probes.slice(0, PROBES_SHOWN);
  $('probes').replaceChildren(
    h(
      'h3', {}, 'Why: ',
      h('span', { class: 'mono' }, line === '' ? '(no bytes)' : line.slice(0, 60)), ' in its block',
    ),
    ...shown.map(probe => drawBlock(probe, probes.length > 1)),
    h(
      'p', { class: 'hint' },
      'Each square is a bit of the one block that this key can be in. Grey: set by some key. ' +
      'Blue: this key’s bits, set. Red: this key’s bits that are not set, so that the key was ' +
      'never added. Put the cursor into another line to see its key.' +
      (probes.length > PROBES_SHOWN
        ? ` The first ${PROBES_SHOWN} of ${probes.length} filters.`
        : ''),
    ),
  );
}

function drawBlock({ part, block, bytes, bits, hit }, hasParts) {
  const count = 8 * bytes.length,
    across = 32, cell = 16, width = across * cell + 2,
    height = (count / across) * cell + 2;
  const own = new Set(bits.map(([bit]) => bit));
  const missing = bits.filter(([, isSet]) => !isSet).length;
  const unset = `${missing} of ${bits.length} bits ${missing === 1 ? 'is' : 'are'} not set`;
  const what = hit
    ? `all ${bits.length} bits are set, so the key may be there`
    : `${unset}, so the key is certainly absent`;
  const name = hasParts ? `${partName(part)}, block` : 'Block';
  const said = `${name} ${whole.format(block)}: ${what}`;
  const svg = s('svg', {
    viewBox: `0 0 ${width} ${height}`, width, role: 'img', 'aria-label': said,
  });
  for (let bit = 0; bit < count; bit++) {
    const isSet = bytes[bit >> 3] >> (bit & 7) & 1;
    const kind = own.has(bit) ? (isSet ? 'hit' : 'miss') : isSet ? 'on' : '';
    svg.append(
      s('rect', {
        class: `bit ${kind}`, x: 1 + (bit % across) * cell + 1.5,
        y: 1 + Math.floor(bit / across) * cell + 1.5, width: cell - 3, height: cell - 3, rx: 2,
      }),
    );
  }
  return h('div', { class: 'block' }, h('p', {}, `${said}.`), svg);
}

async function lookupFile(file) {
  const turn = ++lookingUp;
  if (refused)
    return problem($('typed'), $('typed-problem'), `${file.name} was not looked up: ${refused}`);
  const answer = await worker.ask(
    'lookupFile', { keys: file, shown: ANSWERS_SHOWN }, reportProgress,
  );
  if (turn !== lookingUp) return;
  $('progress').hidden = true;
  $('probes').replaceChildren();
  problem($('typed'), $('typed-problem'), answer.error && `${file.name}, ${answer.error}`);
  if (answer.error) $('answers').replaceChildren();
  else showAnswers(answer);
  performance.mark('looked-up');
}

$('typed').addEventListener('input', () => { if (current.description) lookUp(); });
for (const name of ['click', 'keyup']) $('typed').addEventListener(name, event => {
  if (name === 'click' || event.key.startsWith('Arrow')) {
    if (current.description && $('typed').value) lookUp();
  }
});
$('keys-file').addEventListener(
  'change',
  event => event.target.files[0] && lookupFile(event.target.files[0]),
);
