// The page in Chromium, and what the tests do in it.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { PAGE, SCRATCH, check } from './lib.mjs';

export const axe = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);
export const WASM = join(dirname(PAGE), 'wasm32-unknown-unknown/release/blocked_bloom_page.wasm');
export const url = pathToFileURL(PAGE).href,
  shots = join(SCRATCH, 'shots');
mkdirSync(shots, { recursive: true });
export const began = performance.now();
export const say = text =>
  console.log(`-- ${text} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
export const figures = {};

// Chromium has no sandbox for root.
export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
export const requests = [];
export async function newPage(options = {}, address = url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.on('pageerror', error => check(false, `error of the page: ${error}`));
  page.on('console', message =>
    check(
      !['error', 'warning'].includes(message.type()) || /inline script/.test(message.text()),
      `console: ${message.text()}`,
    ),
  );
  page.on('request', request => requests.push(request.url()));
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName('ready').length);
  return page;
}
export const page = await newPage();

export async function open(path, on = page) {
  await on.evaluate(() => performance.clearMarks('opened'));
  await on.setInputFiles('#file', path);
  await on.waitForFunction(() => performance.getEntriesByName('opened').length, null, {
    timeout: 60000,
  });
}
export const problem = (on = page) =>
  on.evaluate(() =>
    document.getElementById('file-problem').hidden
      ? null
      : document.getElementById('file-problem').textContent,
  );
export async function facts() {
  return JSON.parse(
    await page.evaluate(
      () =>
        new Promise(resolve => {
          const details = document.getElementById('as-json');
          details.addEventListener('toggle', () =>
            setTimeout(() => resolve(details.querySelector('pre').textContent)),
          );
          details.open = true;
        }),
    ),
  );
}
// What the page says of each key, as true for "maybe there", or its error.
export const lookUp = (keys, on = page) =>
  on.evaluate(
    async text => {
      performance.clearMarks('looked-up');
      const typed = document.getElementById('typed');
      typed.value = text;
      typed.dispatchEvent(new Event('input', { bubbles: true }));
      while (!performance.getEntriesByName('looked-up').length)
        await new Promise(resolve => setTimeout(resolve, 2));
      const error = document.getElementById('typed-problem').textContent;
      return (
        error ||
        [...document.querySelectorAll('#answers .verdict')].map(verdict =>
          verdict.classList.contains('maybe'),
        )
      );
    },
    keys.map(key => `${key}\n`).join(''),
  );
export const chooseIn = (id, value, on = page) =>
  on.evaluate(
    async ([id, value]) => {
      const field = document.getElementById(id);
      if (field.value === value) return;
      performance.clearMarks('looked-up');
      field.value = value;
      field.dispatchEvent(
        new Event(field.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }),
      );
      const until = performance.now() + 5000;
      while (!performance.getEntriesByName('looked-up').length && performance.now() < until)
        await new Promise(resolve => setTimeout(resolve, 2));
    },
    [id, value],
  );
