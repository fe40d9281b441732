// Reads files range by range, and calls an instance of the module for each. Messages:
// { id, call, ...arguments }, answered with { id, answer } or { id, progress }.
const PIECE = 4 << 20; // bytes read between two reports of progress
const AT_ONCE = 64 << 20; // filters of a Parquet file that are read before a lookup needs them
let compiled, module, file;

async function read(ranges, report) {
  const total = ranges.reduce((sum, [, length]) => sum + length, 0);
  let done = 0;
  for (const [offset, length] of ranges) {
    // The bytes stay in the module's memory and nowhere else.
    const buffer = module.buffer(length);
    for (let at = 0; at < length; at += PIECE) {
      const piece = new Uint8Array(
        await file.slice(offset + at, offset + Math.min(at + PIECE, length)).arrayBuffer(),
      );
      buffer.set(piece, at);
      done += piece.length;
      report({ done, total });
    }
    module.exports.file_insert(offset);
  }
}

const calls = {
  start({ module: given }) {
    compiled = given;
  },

  async open({ file: given, format, version }, report) {
    module = new Module(compiled);
    if (given) {
      file = given;
      module.put(file.name);
      module.exports.file_begin(file.size);
    } else {
      file = new File([], 'example.bloom');
      module.exports.file_example();
    }
    for (;;) {
      const answer = module.call('file_open', { format, version });
      if (answer.needs) {
        await read(answer.needs, report);
        continue;
      }
      if (answer.error) return answer;
      const wanted = answer.missing ?? [];
      const bytes = wanted.reduce((sum, [, length]) => sum + length, 0);
      if (!wanted.length || bytes > AT_ONCE) return answer;
      await read(wanted, report);
    }
  },

  async choose(options, report) {
    if (options.column) {
      for (;;) {
        const { needs } = module.call('file_missing', { column: options.column });
        if (!needs?.length) break;
        await read(needs, report);
      }
      module.call('file_open', { format: options.format });
    }
    return module.call('file_choose', options);
  },

  lookup({ lines }) {
    module.put(lines);
    return module.call('file_lookup');
  },

  probes({ line }) {
    module.put(line);
    return module.call('file_probes');
  },

  loads: ({ part }) => module.call('file_loads', { part }),

  // Keys of a file, in pieces of whole lines: counts, and the first answers with their keys.
  async lookupFile({ keys, shown }, report) {
    const sum = {
      maybe: 0, absent: 0, lines: [], answers: '', warnings: new Set(), needed: new Set(), of: 0,
    };
    let rest = new Uint8Array(0);
    const head = new Uint8Array(await keys.slice(0, 4096).arrayBuffer());
    module.buffer(head.length).set(head);
    const begun = module.call('keys_begin');
    if (begun?.error) return begun;
    // A byte order mark is not part of the first key.
    const start = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0;
    for (let at = start; at < keys.size || rest.length; at += PIECE) {
      const next = new Uint8Array(await keys.slice(at, at + PIECE).arrayBuffer());
      const bytes = new Uint8Array(rest.length + next.length);
      bytes.set(rest);
      bytes.set(next, rest.length);
      const isLast = at + PIECE >= keys.size;
      const end = isLast ? bytes.length : bytes.lastIndexOf(10) + 1;
      rest = bytes.slice(end);
      if (end) {
        const piece = bytes.subarray(0, end);
        module.buffer(end).set(piece);
        const answer = module.call('file_lookup');
        if (answer.error) {
          // Of the piece.
          const line = number => +number + sum.maybe + sum.absent;
          return { ...answer, error: answer.error.replace(/(?<=^line )\d+/, line) };
        }
        for (const one of answer.answers) sum[one === '1' ? 'maybe' : 'absent']++;
        if (sum.answers.length < shown) {
          const count = Math.min(answer.answers.length, shown - sum.answers.length);
          let end = 0;
          for (let line = 0; line < count; line++) end = piece.indexOf(10, end) + 1 || piece.length;
          const lines = new TextDecoder().decode(piece.subarray(0, end)).split('\n');
          sum.lines.push(...lines.slice(0, count));
          sum.answers = (sum.answers + answer.answers).slice(0, sum.lines.length);
        }
        answer.warnings.forEach(warning => sum.warnings.add(warning));
        answer.row_groups?.needed.forEach(group => sum.needed.add(group));
        sum.of = answer.row_groups?.of ?? 0;
      }
      report({ done: Math.min(at + PIECE, keys.size), total: keys.size });
      if (isLast && !rest.length) break;
    }
    return {
      ...sum, warnings: [...sum.warnings],
      row_groups: sum.of ? { of: sum.of, needed: [...sum.needed].sort((a, b) => a - b) } : null,
    };
  },
};

let last = Promise.resolve();
addEventListener('message', ({ data }) => {
  // One after the other: no file is opened during a lookup in another.
  last = last.then(async () => {
    let answer;
    try {
      answer = await calls[data.call](data, progress => postMessage({ id: data.id, progress }));
    } catch (error) {
      answer = {
        error:
          error.name === 'NotReadableError'
            ? 'the file cannot be read: it has changed, or is gone'
            : error.message,
      };
    }
    postMessage({ id: data.id, answer });
  });
});
