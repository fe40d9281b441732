// node firefox.mjs: the page in Firefox: recorded answers through its inputs, the first plot,
// widths. What differs between browsers, not all of browser.mjs.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';
import { PAGE, SCRATCH, check, equal, finish, recorded } from './lib.mjs';

const browser = await puppeteer.launch({
  browser: 'firefox',
  executablePath: process.env.FIREFOX,
  headless: true,
});
const page = await browser.newPage();
page.on('pageerror', error => check(false, `error of the page: ${error.message}`));
page.on('console', message =>
  check(!['error', 'warn'].includes(message.type()), `console: ${message.text()}`),
);
const mark = name =>
  page.waitForFunction(
    name_ => performance.getEntriesByName(name_).length,
    { timeout: 60000 },
    name,
  );
const clear = () => page.evaluate(() => performance.clearMarks());

for (const width of [1280, 360]) {
  await page.setViewport({ width, height: 900 });
  await page.goto(pathToFileURL(PAGE).href);
  await mark('ready');
  equal(
    await page.evaluate(() => [
      document.querySelectorAll('#plot polyline').length,
      document.documentElement.scrollWidth <= innerWidth,
    ]),
    [4, true],
    `the first plot, ${width} px wide`,
  );
}
await page.evaluate(() => {
  location.hash = '#inspect';
});
let last = '',
  keys = 0;
const cases = recorded();
for (const { file, name, column, type, form, keys: all, expected: answers } of cases) {
  if (file !== last) {
    last = file;
    await clear();
    copyFileSync(file, join(SCRATCH, name));
    await (await page.$('#file')).uploadFile(join(SCRATCH, name));
    await mark('opened');
    equal(await page.evaluate(() => document.getElementById('file-problem').hidden), true, file);
  }
  for (const [id, value] of [
    ['column', column],
    ['type', type],
    ['key-form', form],
  ]) {
    if (value === undefined) continue;
    const isOther = await page.evaluate(
      (id, value) => {
        const field = document.getElementById(id);
        if (field.value === value) return false;
        performance.clearMarks();
        field.value = value;
        return field.dispatchEvent(new Event('change', { bubbles: true }));
      },
      id,
      value,
    );
    if (isOther) await mark('looked-up');
  }
  const some = all.slice(0, 200);
  await page.evaluate(
    lines => {
      performance.clearMarks();
      document.getElementById('typed').value = lines;
      document.getElementById('typed').dispatchEvent(new Event('input', { bubbles: true }));
    },
    some.map(key => `${key}\n`).join(''),
  );
  await mark('looked-up');
  equal(
    await page.evaluate(() =>
      [...document.querySelectorAll('#answers .verdict')].map(one =>
        one.classList.contains('maybe'),
      ),
    ),
    answers.slice(0, 200),
    `${file} ${column ?? type ?? ''}`,
  );
  keys += some.length;
}
const version = await browser.version();
await browser.close();
finish({ browser: version, cases: cases.length, keys });
