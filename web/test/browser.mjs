// node browser.mjs: the page in Chromium, through its own inputs. Pictures of it go to
// SCRATCH/shots, to be looked at.
import { closeSync, ftruncateSync, openSync, readFileSync, readdirSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { FIXTURES, PAGE, SCRATCH, check, equal, finish } from './lib.mjs';
import {
  axe,
  began,
  browser,
  figures,
  lookUp,
  newPage,
  open,
  problem,
  requests,
  say,
  shots,
  url,
} from './chromium.mjs';

await import('./stored.mjs');
await import('./inputs.mjs');
await import('./forms.mjs');

say('3 GB with holes');
{
  // The footer of an SST file says where the rest is: between them may be anything.
  const source = join(FIXTURES, 'rocksdb/bloom_b10_n5000_partitioned.sst'),
    bytes = readFileSync(source),
    FOOTER = 53,
    LENGTH = 3 * 2 ** 30;
  const path = join(SCRATCH, 'large.sst'),
    file = openSync(path, 'w');
  writeSync(file, bytes, 0, bytes.length - FOOTER, 0);
  ftruncateSync(file, LENGTH - FOOTER);
  writeSync(file, bytes, bytes.length - FOOTER, FOOTER, LENGTH - FOOTER);
  closeSync(file);
  const on = await newPage();
  // The resident memory of all processes of the browser.
  const processes = () => {
    const parents = new Map();
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      try {
        parents.set(
          Number(pid),
          Number(
            readFileSync(`/proc/${pid}/stat`, 'utf8')
              .replace(/^.*\) /, '')
              .split(' ')[1],
          ),
        );
      } catch {
        /* it is gone */
      }
    }
    const isOurs = pid => pid && (parents.get(pid) === process.pid || isOurs(parents.get(pid)));
    return [...parents.keys()].filter(isOurs);
  };
  const memory = () =>
    processes().reduce((sum, pid) => {
      try {
        const [, proportional] = /^Pss:\s+(\d+)/m.exec(
          readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'),
        ) ?? [0, 0];
        return sum + Number(proportional) / 1024;
      } catch {
        return sum;
      }
    }, 0);
  const before = memory();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, memory());
  }, 50);
  const start = performance.now();
  await open(path, on);
  figures.large_ms = Math.round(performance.now() - start);
  most = Math.max(most, memory());
  clearInterval(watch);
  equal(await problem(on), null, 'an SST file of 3 GiB');
  figures.large_MiB = Math.round(most - before);
  figures.browser_MiB = Math.round(most);
  check(
    before > 20 && figures.large_MiB < 200,
    `an SST file of 3 GiB takes ${figures.large_MiB} MiB more than ${before}`,
  );
  await on.click('#to-lookup');
  equal(await lookUp(['user00000000', 'nobody'], on), [true, false], 'an SST file of 3 GiB');
  await on.close();
}

say('accessibility, widths and pictures');
{
  let violations = 0;
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [360, 1280]) {
      const on = await newPage({
        viewport: { width, height: 900 },
        colorScheme,
        reducedMotion: 'reduce',
      });
      const look = async name => {
        await on.screenshot({
          path: join(shots, `${name}-${width}-${colorScheme}.png`),
          fullPage: true,
        });
        const [content, window_] = await on.evaluate(() => [
          document.documentElement.scrollWidth,
          innerWidth,
        ]);
        check(content <= window_, `${name} at ${width} px is ${content} px wide`);
        const result = await on.evaluate(
          `${axe}; axe.run(document, { resultTypes: ['violations'] })`,
        );
        violations += result.violations.length;
        for (const { id, nodes } of result.violations)
          check(
            false,
            `${name}, ${width} px, ${colorScheme}: ${id}: ${nodes
              .map(node => `${node.html} ${node.failureSummary}`)
              .join('\n')
              .slice(0, 600)}`,
          );
      };
      await look('size');
      const long = await on.evaluate(() => document.documentElement.scrollHeight);
      figures[`size_${width}_px`] = long;
      check(width > 400 || long < 3000, `the sizes are ${long} px long at ${width} px`);
      await on.click('#to-inspect');
      await look('inspect');
      for (const [name, path] of [
        ['sst', 'rocksdb/bloom_b10_n5000_partitioned.sst'],
        ['parquet', 'parquet/pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet'],
      ]) {
        await open(join(FIXTURES, path), on);
        await look(name);
      }
      await on.click('#to-lookup');
      await look('columns');
      await on.click('#to-inspect');
      await on.evaluate(() => performance.clearMarks('opened'));
      await on.click('#example');
      await on.waitForFunction(() => performance.getEntriesByName('opened').length);
      await on.click('#to-lookup');
      await lookUp(
        [
          'nobody',
          'user7',
          'user999',
          'user1000',
          'a key that is rather long, and does not fit into one line of a narrow screen',
        ],
        on,
      );
      await look('lookup');
      await on.close();
    }
  }
  figures.violations = violations;
}

say('the first plot');
{
  const times = [];
  for (let i = 0; i < 5; i++) {
    const on = await newPage();
    times.push(await on.evaluate(() => performance.getEntriesByName('ready')[0].startTime));
    check((await on.locator('#plot polyline').count()) === 4, 'the plot is there');
    await on.close();
  }
  figures.first_plot_ms = times.map(Math.round);
  check(Math.min(...times) < 500, `the first plot after ${times} ms`);
}

say('what the page requests');
{
  // By HTTP, too: a server sees one request.
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(request.url);
    response.setHeader('Content-Type', 'text/html');
    response.end(request.url === '/' ? readFileSync(PAGE) : '');
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const on = await newPage({}, `http://127.0.0.1:${server.address().port}/`);
  await open(join(FIXTURES, 'rocksdb/bloom_b10_n5000_str.sst'), on);
  // What a script in the page, however it came there, may connect to: nothing.
  const violation = await on
    .evaluate(
      () =>
        new Promise(resolve => {
          addEventListener('securitypolicyviolation', event => resolve(event.effectiveDirective));
          const script = document.createElement('script');
          script.textContent = 'fetch("/stolen")';
          document.body.append(script);
        }),
    )
    .catch(error => String(error));
  check(/script-src/.test(violation), `a script that is not the page's does not run: ${violation}`);
  server.close();
  equal(seen, ['/'], 'requests to the server');
  await on.close();
  const left = requests.filter(
    request =>
      request !== url &&
      !request.startsWith(`${url}#`) &&
      !/^(blob|data):/.test(request) &&
      !/^http:\/\/127\.0\.0\.1:\d+\/$/.test(request),
  );
  equal(left, [], 'requests that leave the page');
  figures.requests = requests.length;
}

await browser.close();
finish({ ...figures, seconds: Math.round((performance.now() - began) / 1000) });
