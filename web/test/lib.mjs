// What the tests share: fixtures, the tool, and a count of what failed.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

export const FIXTURES = process.env.FIXTURES,
  TOOL = process.env.TOOL,
  PAGE = process.env.PAGE,
  SCRATCH = process.env.SCRATCH;

export const walk = folder =>
  readdirSync(folder)
    .sort()
    .flatMap(name => {
      const path = join(folder, name);
      return statSync(path).isDirectory() ? walk(path) : [path];
    });

const csv = path =>
  readFileSync(path, 'utf8')
    .trim()
    .split(/\r?\n/)
    .slice(1)
    .map(line => line.split(','));

// Files with recorded answers: { file, name, keys, expected } and what is chosen in the page:
// column, type, form.
export function recorded() {
  const cases = [];
  const add = (file, rows, key, expected, chosen = {}) =>
    cases.push({
      file,
      name: basename(file),
      form: 'hex',
      keys: rows.map(row => row[key]),
      expected: rows.map(row => /[1-9]/.test(row[expected])),
      ...chosen,
    });
  for (const file of walk(FIXTURES)) {
    const answers = file.replace(/\.(sst|parquet|scandump|bin)$/, '.csv');
    if (answers !== file && existsSync(answers)) {
      const rows = csv(answers);
      const groups = column =>
        [...new Set(rows.map(row => row[column]))].map(value => [
          value,
          rows.filter(row => row[column] === value),
        ]);
      if (file.endsWith('.parquet'))
        for (const [column, own] of groups(1)) add(file, own, 3, 5, { column });
      else if (basename(file).startsWith('spark'))
        for (const [type, own] of groups(0))
          add(file, own, 1, 3, {
            type: type === 'long' ? 'int64' : '',
            form: type === 'long' ? 'text' : 'hex',
          });
      else add(file, rows, 0, 2);
    } else if (file.endsWith('Filter.db')) {
      // Names that lie, on purpose: MANIFEST.md.
      if (/MISLABELLED|NEWORDER/.test(file)) continue;
      const generated = /generated.*-(ma|nb)-Filter\.db$/.exec(file);
      const keys = generated
        ? file.replace(/-(ma|nb)-Filter\.db$/, '.csv')
        : file.replace(/Filter\.db$/, 'keys.csv');
      // As Cassandra names them.
      if (existsSync(keys))
        add(file, csv(keys), 0, 2, generated ? { name: `${generated[1]}-1-big-Filter.db` } : {});
    }
  }
  return cases;
}

// The tool's answer as JSON, also where it says by its exit status that the filter is damaged; null
// if it has none.
export function tool(...args) {
  let text;
  try {
    text = execFileSync(TOOL, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 1 << 28,
    });
  } catch (error) {
    text = error.stdout;
  }
  return text ? JSON.parse(text) : null;
}

// Fields as the module takes them.
export const form = fields =>
  Object.entries(fields)
    .map(([name, value]) => `${name}\0${value}\0`)
    .join('');

let failures = 0;
export function check(isGood, text) {
  if (isGood) return;
  failures++;
  console.log(`FAILED: ${text}`);
}
export const equal = (found, expected, text) =>
  check(
    JSON.stringify(found) === JSON.stringify(expected),
    `${text}: ${JSON.stringify(found)?.slice(0, 500)}, ` +
      `expected ${JSON.stringify(expected)?.slice(0, 500)}`,
  );
export function finish(summary) {
  console.log(summary);
  if (failures) console.log(`${failures} checks failed`);
  process.exitCode = failures ? 1 : 0;
}
