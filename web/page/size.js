// The view `size`: one set of keys, filters of five kinds.
const KINDS = {
  blocked: { name: 'Blocked', note: 'blocked-bloom, RocksDB' },
  classical: { name: 'Classical', note: 'Guava, Spark, Cassandra, Redis' },
  'split-block': { name: 'Split block', note: 'Parquet, Impala, Kudu' },
  ribbon: { name: 'Ribbon', note: 'static: all keys known' },
  tags: { name: 'Tags', note: 'keys can be removed' },
};
const SIZE_DEFAULTS = {
  keys: '1M', by: 'bits', bits: '10', rate: '1%', bytes: '1 MiB', load: '100k', kind: 'blocked',
};
const SIZE_FIELDS = ['keys', 'bits', 'rate', 'bytes', 'load'];
let filters; // the module, once it is compiled
let sizes; // the last good answer

const sizingMode = () => document.querySelector('[name=by]:checked').value;

function showSize() {
  const input = Object.fromEntries(SIZE_FIELDS.map(name => [name, $(name).value]));
  input.by = sizingMode();
  for (const name of ['bits', 'rate', 'bytes']) $(`by-${name}`).hidden = name !== input.by;
  const slider = Number(input.bits);
  if (slider) $('bits-slider').value = slider;
  const answer = filters.call('size_table', input);
  const fault = name => (answer.field === name ? answer.error : null);
  problem($('keys'), $('keys-problem'), fault('keys'));
  problem($('load'), $('load-problem'), fault('load'));
  problem(
    $(input.by), $('by-problem'),
    fault(input.by) ??
      (answer.error && !['keys', 'load'].includes(answer.field) ? answer.error : null),
  );
  $('size').classList.toggle('stale', !!answer.error);
  if (answer.error) return;
  sizes = answer;
  sizes.input = input;
  if (!usable(sizes.rows.find(row => row.kind === plot.kind))) plot.kind = 'blocked';
  if (plot.keys !== sizes.keys) {
    plot.keys = sizes.keys;
    plot.curves = filters.call('size_curves', { keys: input.keys });
  }
  plot.rows = sizes.rows.filter(usable);
  drawPlot();
  showKinds();
  showChosen();
}

const usable = row => row && row.rate !== undefined && row.rate !== null;

const swatchOf = kind =>
  s(
    'svg', { class: 'swatch', viewBox: '0 0 20 12', 'aria-hidden': 'true' },
    kind === 'tags'
      ? s('circle', { class: 'dot tags', cx: 10, cy: 6, r: 4 })
      : s('path', { class: kind, d: 'M0 6H20' }),
  );

function showKinds() {
  const term = (name, value) =>
    h('span', { class: 'number' }, h('span', { class: 'term' }, name), value);
  const rows = sizes.rows.map(row => {
    const kind = KINDS[row.kind];
    const swatch = swatchOf(row.kind);
    const name = h(
      'span', { class: 'name' },
      h('input', {
        type: 'radio', name: 'kind', value: row.kind, checked: row.kind === plot.kind,
        disabled: !usable(row), onchange: chooseKind,
      }),
      swatch, h('span', {}, kind.name),
    );
    if (!usable(row))
      return h(
        'label', { class: 'row' }, name,
        h('span', { class: 'more' }, 'There is none of this size.'),
      );
    const { written: file } = sizes;
    const written =
      row.kind === 'split-block' && file
        ? ` A writer of Parquet files makes it ${size(file.bytes)}, with ${percent(file.rate)}.`
        : '';
    return h(
      'label', { class: 'row' }, name, term('memory', size(row.bytes)),
      term('bits per key', row.bits_per_key.toFixed(2)), term('probes', row.probes ?? '–'),
      term('pass', percent(row.rate)), term('wrong per s', significant(sizes.load * row.rate)),
      h('span', { class: 'more' }, kind.note + (written ? '.' : '') + written),
    );
  });
  const heads = ['', 'memory', 'bits per key', 'probes', 'pass', 'wrong per second'].map(
    (head, at) => h('span', { class: at ? 'number' : '' }, head),
  );
  const focused = document.activeElement?.name === 'kind';
  $('kinds').replaceChildren(
    h('div', { class: 'row head', 'aria-hidden': 'true' }, ...heads), ...rows,
  );
  if (focused) $('kinds').querySelector(':checked')?.focus();
}

function showChosen() {
  const row = sizes.rows.find(row => row.kind === plot.kind), wrong = sizes.load * row.rate;
  $('answer-kind').textContent = `${KINDS[row.kind].name} filter of ${counted(sizes.keys, 'key')}`;
  const figures = [
    ['memory', size(row.bytes)], ['of absent keys pass: false positives', percent(row.rate)],
    ['bits per key', row.bits_per_key.toFixed(2)],
  ];
  if (row.probes) figures.push(['probes per lookup', row.probes]);
  $('answer').replaceChildren(
    ...figures.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, String(value)))),
  );
  const double =
    row.kind === 'blocked' && sizes.choice.keys_at_double_rate
      ? ` With ${whole.format(sizes.choice.keys_at_double_rate)} keys in it, twice as many pass.`
      : '';
  const large =
    row.kind === 'blocked' && sizes.choice.partition_recommended
      ? ' Above 16 GiB the rate gets worse: divide the keys among several filters.'
      : '';
  const unused =
    row.kind === 'blocked' && sizes.input.by === 'bytes' && row.bytes < 0.9 * sizes.figure
      ? ' More than 100 bits per key change nothing: the rest of the memory is not used.'
      : '';
  const none = row.kind === 'blocked' && sizes.choice.pass_all;
  const oneIn = significant(1 / row.rate).replace(/\.0+$/, '');
  $('sentence').textContent = none
    ? 'No filter: every lookup reads.'
    : `One lookup of an absent key in ${oneIn} goes wrong: ${significant(wrong)} per second of ` +
      `${whole.format(sizes.load)}.${double}${large}${unused}`;
  $('code').replaceChildren(...codeOf(row).map(([name, text]) => snippet(name, text)));
  writeSize();
}

// The lines that make the chosen filter.
function codeOf(row) {
  const { input } = sizes, rate = String(Number(row.rate.toPrecision(3)));
  const number = text => text.replace(/[\s,_]/g, '');
  const asFloat = text => (/[.e]/.test(text) ? text : `${text}.0`);
  const bits = asFloat(String(sizes.figure)), given = String(sizes.figure);
  const sized = {
    bits: [`Sizing::BitsPerKey(${bits})`, `bits_per_key=${given}`, `--bits-per-key ${given}`],
    rate: [`Sizing::FalsePositiveRate(${given})`, `fpr=${given}`, `--fpr ${given}`],
    bytes: [
      `Sizing::MaxBytes(${given})`, `bits_per_key=${Number(row.bits_per_key.toPrecision(6))}`,
      `--max-bytes ${given}`,
    ],
  }[input.by];
  const build = rest => ['Command line', `blocked-bloom build keys.txt ${rest}`];
  const { keys } = sizes, inPython = String(keys).replace(/\B(?=(\d{3})+$)/g, '_');
  switch (row.kind) {
    case 'blocked': return [
      [
        'Rust',
        `let mut filter = blocked_bloom::FilterOptions::new(blocked_bloom::${sized[0]})` +
          `.empty_filter(${keys})?;`,
      ],
      [
        'Python',
        'from blocked_bloom import BloomFilter\n' +
          `filter = BloomFilter(${inPython}, ${sized[1]})`,
      ],
      build(sized[2]),
    ];
    case 'classical': return [
      [
        'Rust',
        `let mut filter = blocked_bloom_formats::guava::GuavaFilter::new(${keys}, ${rate})?;`,
      ],
      [
        'Java',
        'BloomFilter<byte[]> filter = BloomFilter.create(Funnels.byteArrayFunnel(), ' +
          `${keys}${keys > 2147483647 ? 'L' : ''}, ${rate});`,
      ],
      build(`--format guava --fpr ${rate}`),
    ];
    case 'split-block': return [
      // Written filters have a power of two of blocks.
      [
        'Rust',
        'let mut filter = blocked_bloom_split::SplitBlockFilter::' +
          (input.by === 'rate'
            ? `new(${keys}, ${given})?;`
            : `with_blocks(${2 ** Math.ceil(Math.log2(row.bytes / 32))})?;`),
      ],
      build(`--format parquet-filter --fpr ${rate}`),
    ];
    case 'ribbon': return [
      ['Rust', `let mut builder = blocked_bloom_ribbon::RibbonOptions::new(${rate}).builder();`],
      build(`--format ribbon --fpr ${rate}`),
    ];
    default: return [
      [
        'Rust',
        `let mut filter = blocked_bloom_removable::RemovableOptions::new(${keys})` +
          '.empty_filter()?;',
      ],
      build(`--format removable --keys ${number(String(keys))}`),
    ];
  }
}

function chooseKind(event) {
  plot.kind = event.target.value;
  drawPlot();
  showChosen();
}

function chooseBits(bits) {
  document.querySelector('[value=bits]').checked = true;
  $('bits').value = String(bits);
  showSize();
}

function writeSize() {
  if (readState().view !== 'size') return;
  const query = new URLSearchParams();
  const values = {
    keys: $('keys').value,
    by: sizingMode(),
    [sizingMode()]: $(sizingMode()).value,
    load: $('load').value,
    kind: plot.kind,
    ...levelsState(),
  };
  for (const [name, value] of Object.entries(values)) query.set(name, value);
  writeState(query);
}

function readSize(query) {
  for (const name of SIZE_FIELDS)
    $(name).value = query.get(name) ?? ($(name).value || SIZE_DEFAULTS[name]);
  const wanted = query.get('by');
  if (['bits', 'rate', 'bytes'].includes(wanted))
    document.querySelector(`[name=by][value=${wanted}]`).checked = true;
  if (query.get('kind') in KINDS) plot.kind = query.get('kind');
}

$('size-form').addEventListener('input', event => {
  // Another way to size goes on from the filter that was chosen.
  const row = event.target.name === 'by' && sizes?.rows.find(row => row.kind === plot.kind);
  if (row)
    $(sizingMode()).value = {
      bits: String(Number(row.bits_per_key.toFixed(2))),
      rate: `${Number((100 * row.rate).toPrecision(3))}%`, bytes: whole.format(row.bytes),
    }[sizingMode()];
  if (event.target.id === 'bits-slider') $('bits').value = event.target.value;
  showSize();
});
for (const id of ['size-form', 'levels-form'])
  $(id).addEventListener('submit', event => event.preventDefault());
