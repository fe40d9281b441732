// The view `inspect`: the format and the contents of a file.
const FORMATS = {
  native: 'Blocked Bloom filter of blocked-bloom',
  compact: 'Blocked Bloom filter in the compact form', growing: 'Growing filter of blocked-bloom',
  'partition-index': 'Index of a filter in partitions', ribbon: 'Ribbon filter of blocked-bloom',
  removable: 'Filter of tags, whose keys can be removed', planes: 'Bit planes, a skip index',
  'file-index': 'Index of files of blocked-bloom',
  'rocksdb-block': 'Filter block of RocksDB', 'rocksdb-sst': 'SST file of RocksDB',
  'parquet-filter': 'Bloom filter of a Parquet column', parquet: 'Parquet file',
  cassandra: 'Filter of Cassandra', guava: 'Bloom filter of Guava', spark: 'Bloom filter of Spark',
  redisbloom: 'Dump of a RedisBloom filter',
};
const VERSIONS = [
  ['', 'as the file’s name says'], ['la', 'up to 2.2'], ['me', '3.0 to 3.11'],
  ['nb', '4.0 and later'],
];
const LINES_SHOWN = 100;
const RDB =
  'Export a filter from Redis: call BF.SCANDUMP KEY 0, and again with each iterator that it ' +
  'returns, until that is 0. The page reads a file of all replies, each as its iterator and its ' +
  'length (8 bytes each, little-endian) and then its data.';
const current = { file: null, name: '', size: 0, description: null };

const worker = {
  port: null, waiting: new Map(), next: 0,
  start() {
    const source = new Blob([$('worker').textContent], { type: 'text/javascript' });
    this.port = new Worker(URL.createObjectURL(source));
    this.port.addEventListener('message', ({ data: { id, answer, progress } }) => {
      const { resolve, report } = this.waiting.get(id);
      if (progress) return report?.(progress);
      this.waiting.delete(id);
      resolve(answer);
    });
    this.ask('start', { module: filters.compiled });
  },
  ask(call, given = {}, report) {
    if (!this.port) this.start();
    const id = this.next++;
    return new Promise(resolve => {
      this.waiting.set(id, { resolve, report });
      this.port.postMessage({ id, call, ...given });
    });
  },
};

function reportProgress({ done, total }) {
  if (total < 8 << 20) return;
  $('progress').hidden = done >= total;
  $('progress-bar').value = done / total;
  $('progress-text').textContent = `Reading ${size(done)} of ${size(total)}`;
}

let opening = 0;
async function openFile(file, options = {}) {
  const turn = ++opening;
  Object.assign(current, { file, name: file?.name ?? 'example.bloom', description: null });
  for (const id of ['found', 'file-problem', 'file-options']) $(id).hidden = true;
  noLookups();
  const answer = await worker.ask('open', { file, ...options }, reportProgress);
  if (turn !== opening) return;
  $('progress').hidden = true;
  showOptions(answer, options);
  if (answer.error) showFileProblem(answer, options);
  else await showFile(answer);
  performance.mark('opened');
}

function showFileProblem(answer, options) {
  const paragraphs = [
    h('p', {}, `${current.name}: ${answer.error}${answer.error.endsWith('?') ? '' : '.'}`),
  ];
  if (answer.content) paragraphs.push(h('p', {}, answer.content));
  if (answer.is_redis) paragraphs.push(h('p', {}, RDB));
  if (answer.like === 'compact')
    paragraphs.push(
      h(
        'p', {},
        h(
          'button',
          { type: 'button', onclick: () => openFile(current.file, { format: 'compact' }) },
          'Read it as a compact filter',
        ),
      ),
    );
  if (answer.text)
    paragraphs.push(
      h(
        'p', {},
        'If it is a list of keys, look them up in a filter: open the filter first, and then ' +
        'drop this file under “Look up”.',
      ),
    );
  if (answer.lost)
    paragraphs.push(
      h(
        'p', {},
        'Filters of this format are read whole. The command-line tool can look into files of ' +
        'any size.',
      ),
    );
  $('said').textContent = '';
  $('file-problem').replaceChildren(...paragraphs);
  $('file-problem').hidden = false;
}

function select(id, label, options, value, onchange) {
  const choice = h(
    'select', { id, onchange },
    ...options.map(([value_, text]) => h('option', { value: value_ }, text)),
  );
  choice.value = value;
  return h('div', { class: 'field' }, h('label', { for: id }, label), choice);
}

// The choice of a format or version where it is not certain.
function showOptions(answer, options) {
  const fields = [];
  if (options.format || answer.field === 'format' && !answer.content) {
    const formats = filters.call('formats', {}).map(name => [name, FORMATS[name] ?? name]);
    fields.push(
      select(
        'read-as', 'Read it as', [['', 'what its bytes say'], ...formats], options.format ?? '',
        event => openFile(current.file, { format: event.target.value }),
      ),
    );
  }
  if (answer.format === 'cassandra') {
    fields.push(
      select('version', 'Version of Cassandra', VERSIONS, options.version ?? '', event =>
        openFile(current.file, { ...options, version: event.target.value }),
      ),
    );
  }
  $('file-options').replaceChildren(...fields);
  $('file-options').hidden = !fields.length;
}

async function showFile(description) {
  current.description = description;
  const parts = [
    h(
      'div', { class: 'what' }, h('h3', {}, FORMATS[description.format] ?? description.format),
      h('p', {}, current.name),
    ),
  ];
  if (description.damage)
    parts.push(h('div', { class: 'alert', role: 'alert' }, h('p', {}, description.damage)));
  else parts.push(h('p', { id: 'summary' }, summaryOf(description)));
  const rows = description.rows.filter(([name]) => name !== 'file' && !name.startsWith('kernel'));
  const fill = description.facts.fill_ratio;
  parts.push(
    h(
      'dl', { class: 'facts' },
      ...rows.map(([name, value]) =>
        h(
          'div', {}, h('dt', {}, name),
          h(
            'dd', { class: value.startsWith('DAMAGED') ? 'damaged' : undefined },
            typeof fill === 'number' && /fill|bits set/.test(name) ? [fillBar(fill), value] : value,
          ),
        ),
      ),
    ),
  );
  if (description.missing.length)
    parts.push(
      h(
        'p', { class: 'note' },
        'The filters take more than 64 MiB and were not read yet: those of a column are read ' +
        'when it is looked up.',
      ),
    );
  if (description.list) parts.push(...listsOf(description));
  const loads = h('div', {});
  parts.push(loads);
  const json = h('pre', {});
  const asJson = h(
    'details',
    {
      id: 'as-json',
      ontoggle: () => {
        json.textContent = JSON.stringify(description.facts, null, 2);
      },
    },
    h('summary', {}, 'As JSON'), json,
  );
  const action =
    description.format === 'partition-index' || description.damage
      ? null
      : h('p', {}, h('a', { class: 'button', href: '#lookup' }, 'Look up keys in it'));
  $('found').replaceChildren(...parts, ...(action ? [action] : []), asJson);
  $('found').hidden = false;
  $('drop').classList.add('small');
  $('said').textContent = `${current.name}: ${FORMATS[description.format] ?? description.format}`;
  await showLoads(loads, description);
  allowLookups();
}

// The contents of the file, in one sentence.
function summaryOf({ facts, list, columns, format }) {
  const rate = facts.estimated_false_positive_rate ?? facts.false_positive_rate;
  const keys = facts.estimated_keys ?? facts.keys_inserted ?? facts.keys;
  const parts = [];
  if (facts.pass_all) parts.push('passes every key');
  else {
    if (typeof keys === 'number') parts.push(`holds about ${counted(roundKeys(keys), 'key')}`);
    if (typeof rate === 'number' && rate > 0)
      parts.push(
        rate > 0.5 ? `${percent(rate)} of absent keys pass`
          : `1 in ${whole.format(Number((1 / rate).toPrecision(2)))} absent keys passes`,
      );
  }
  if (format === 'parquet')
    parts.push(
      columns.length
        ? `has filters for ${counted(columns.length, 'column')}` : 'has no filter for any column',
    );
  else if (!parts.length && list) parts.push(`has ${counted(list.lines.length, 'part')}`);
  parts.push(facts.checksum === null ? 'it has no checksum' : 'undamaged');
  const text = parts.join('; ');
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

const roundKeys = keys => (keys < 1000 ? Math.round(keys) : Number(keys.toPrecision(2)));

function fillBar(fill) {
  const inner = h('span', {});
  inner.style.width = `${Math.min(100, 100 * fill)}%`;
  return h(
    'span',
    { class: 'bar', role: 'img', 'aria-label': `${(100 * fill).toFixed(1)} % of the bits are set` },
    inner,
  );
}

// Row groups of a Parquet file are many: a line for each column, and all row groups on demand.
function listsOf({ format, list }) {
  const column = list.heads.indexOf('column');
  if (format !== 'parquet' || column < 0) return [listOf(list)];
  const columns = Map.groupBy(list.lines, line => line[column]);
  const hasFilter = line => line.some((cell, at) => at > column && /^[0-9]/.test(cell));
  const lines = [...columns].map(([name, all]) => [
    name, whole.format(all.length), whole.format(all.filter(hasFilter).length),
    whole.format(all.filter(line => line.includes('DAMAGED')).length),
  ]);
  const heads = ['column', 'row groups', 'with a filter', 'damaged'];
  return [
    listOf({ words: 1, heads, lines }, 'Columns'),
    h('details', {}, h('summary', {}, 'All row groups'), listOf(list)),
  ];
}

function listOf({ words, heads, lines }, title = 'Parts of it') {
  const cells = line =>
    line.map((cell, at) =>
      h(
        'td',
        {
          class:
            at < words
              ? cell === 'DAMAGED'
                ? 'damaged'
                : undefined
              : `number${cell === 'DAMAGED' ? ' damaged' : ''}`,
          'data-head': heads[at],
        },
        cell,
      ),
    );
  const body = h(
    'tbody', {},
    ...lines.slice(0, LINES_SHOWN).map(line => h('tr', {}, ...cells(line))),
  );
  const more =
    lines.length > LINES_SHOWN &&
    h(
      'p', {},
      h(
        'button',
        {
          type: 'button',
          onclick: event => {
            body.append(...lines.slice(LINES_SHOWN).map(line => h('tr', {}, ...cells(line))));
            event.target.remove();
          },
        },
        `Show all ${whole.format(lines.length)}`,
      ),
    );
  return h(
    'div', {}, h('h3', {}, `${title}: ${whole.format(lines.length)}`),
    h(
      'table', { class: 'stacked' },
      h(
        'thead', {},
        h(
          'tr', {},
          ...heads.map((head, at) =>
            h('th', { scope: 'col', class: at < words ? undefined : 'number' }, head),
          ),
        ),
      ),
      body,
    ),
    more || null,
  );
}

// How full the blocks are, next to the blocks that even hashing leaves.
async function showLoads(place, description) {
  if (!description.parts) return;
  let part = 0, loads = null;
  for (; part < Math.min(description.parts, 64) && !loads; part++)
    loads = await worker.ask('loads', { part });
  if (!loads) return;
  part--;
  const lines = description.list?.lines ?? [], words = description.list?.words ?? 0;
  const group = description.list?.heads.indexOf('row group');
  const nameOf = at => {
    const hasLines = lines.length === description.parts;
    const own = hasLines ? `: ${lines[at].slice(0, Math.max(words, 1)).join(', ')}` : '';
    return `${at}${own}${group > 0 ? `, row group ${lines[at][group]}` : ''}`;
  };
  const picture = h('div', {});
  const draw = () =>
    picture.replaceChildren(...drawLoads(loads, Math.max(280, picture.clientWidth || 700)));
  const choices = Array.from({ length: Math.min(description.parts, 1000) }, (_, at) => [
    String(at), nameOf(at),
  ]);
  const choice =
    description.parts > 1
      ? h(
          'div', { class: 'options' },
          select('part', 'Part', choices, String(part), async event => {
            loads = await worker.ask('loads', { part: Number(event.target.value) });
            if (loads) draw();
            else
              picture.replaceChildren(
                h('p', { class: 'hint' }, 'This part has no filter whose blocks can be counted.'),
              );
          }),
        )
      : null;
  place.replaceChildren(
    h('h3', {}, 'How full the blocks are'), ...(choice ? [choice] : []), picture,
  );
  draw();
  new ResizeObserver(draw).observe(place);
}

function drawLoads(loads, width) {
  const height = 240, left = 58, bottom = 42, top = 10, right = 8;
  const { counted: bars, expected, from, step, blocks, block_bits: bits } = loads;
  const most = Math.max(...bars, ...expected, 1);
  const x = at => left + (at / bars.length) * (width - left - right),
    y = count => height - bottom - (count / most) * (height - top - bottom);
  const mean = loads.fill_ratio * bits, to = from + step * bars.length - 1;
  const svg = s('svg', {
    width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label':
      `Blocks by bits set: ${bars.length} bars from ${from} to ${to} of ${bits}, ` +
      `mean ${mean.toFixed(0)}`,
  });
  for (const part of most > 1 ? [0, 0.5, 1] : [0, 1]) {
    svg.append(
      s('line', {
        class: 'grid', x1: left, x2: width - right, y1: y(part * most), y2: y(part * most),
      }),
      s(
        'text', { x: left - 8, y: y(part * most) + 4, 'text-anchor': 'end' },
        String(Number((part * most).toPrecision(3))),
      ),
    );
  }
  const gap = bars.length > 1 ? Math.min(2, (x(1) - x(0)) / 4) : 0;
  const wide = Math.max(1, Math.min(60, x(1) - x(0) - gap));
  bars.forEach(
    (count, at) =>
      count &&
      svg.append(
        s('rect', {
          class: 'counted', x: (x(at + 0.5) - wide / 2).toFixed(1), width: wide.toFixed(1),
          y: y(count).toFixed(1),
          height: (height - bottom - y(count)).toFixed(1),
        }),
      ),
  );
  if (expected.some(count => count > 0))
    svg.append(
      s('polyline', {
        class: 'expected',
        points: expected
          .map((count, at) => `${x(at + 0.5).toFixed(1)},${y(count).toFixed(1)}`)
          .join(' '),
      }),
    );
  const ticks = Math.max(1, Math.ceil(bars.length / (width / 70)));
  for (let at = 0; at < bars.length; at += ticks)
    svg.append(
      s(
        'text', { x: x(at + 0.5), y: height - 22, 'text-anchor': 'middle' },
        String(from + at * step),
      ),
    );
  const middle = { x: (left + width) / 2, y: height - 3, 'text-anchor': 'middle' };
  svg.append(s('text', middle, `bits set, of the ${bits} of a block`));
  const legend = `${counted(blocks, 'block')}, ${loads.probes} bits per key. ` +
    'Bars: the blocks of this filter. Line: blocks of as many evenly hashed keys. ';
  return [svg, h('p', {}, legend, verdictOf(loads))];
}

const FEW_BLOCKS = 64;

// Whether the blocks look as evenly hashed keys leave them: the distance of the two, compared with
// the distance by chance.
function verdictOf({ counted: bars, expected, blocks, fill_ratio: fill }) {
  if (!fill) return 'No bit is set: the filter has no keys.';
  const total = expected.reduce((sum, count) => sum + count, 0);
  if (!total && fill >= 1) return 'Every bit is set: the filter answers “maybe” to every key.';
  if (!total) return '';
  const distance = bars.reduce((sum, count, at) => sum + Math.abs(count - expected[at]), 0) / 2;
  const chance = expected.reduce((sum, count) => sum + Math.sqrt(count), 0) / 2;
  if (fill > 0.75) return 'The filter is overfull: it holds more keys than it was made for.';
  if (blocks < FEW_BLOCKS) return 'There are too few blocks to compare them.';
  if (distance > 3 * chance && distance > 0.1 * blocks)
    return 'They are far apart: the keys were hashed unevenly, or the filter is damaged.';
  return 'They agree.';
}

$('file').addEventListener(
  'change', event => event.target.files[0] && openFile(event.target.files[0]),
);
for (const id of ['example', 'example-2']) $(id).addEventListener('click', () => openFile(null));
for (const name of ['dragenter', 'dragover'])
  addEventListener(name, event => {
    event.preventDefault();
    document.body.classList.add('over');
  });
addEventListener('dragleave', event => {
  if (!event.relatedTarget) document.body.classList.remove('over');
});
addEventListener('drop', event => {
  event.preventDefault();
  document.body.classList.remove('over');
  const file = event.dataTransfer.files[0];
  if (!file) return;
  const isLookup = readState().view === 'lookup' && current.description;
  if (isLookup && $('lookup-form').contains(event.target)) return lookupFile(file);
  location.hash = '#inspect';
  openFile(file);
});
