// Sizes, levels, states of the forms, errors and the keyboard.
import { readFileSync } from 'node:fs';
import { check, equal, form, tool } from './lib.mjs';
import { WASM, figures, newPage, page, say, url } from './chromium.mjs';

say('sizes and levels, as plan has them');
{
  const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(WASM))).exports;
  const answer = (call, given) => {
    const bytes = new TextEncoder().encode(form(given)),
      at = instance.input(bytes.length) >>> 0;
    new Uint8Array(instance.memory.buffer, at, bytes.length).set(bytes);
    const from = instance[call]() >>> 0;
    return JSON.parse(
      new TextDecoder().decode(new Uint8Array(instance.memory.buffer, from, instance.answer_len())),
    );
  };
  let same = 0;
  await page.click('#to-size');
  for (const keys of ['1', '100', '12345', '1M', '100M', '1G']) {
    for (const [by, flag, value] of [
      ['bits', '--bits-per-key', '5'],
      ['bits', '--bits-per-key', '9.9'],
      ['bits', '--bits-per-key', '16'],
      ['rate', '--fpr', '1%'],
      ['rate', '--fpr', '0.0005'],
      ['bytes', '--max-bytes', '64KiB'],
    ]) {
      const planned = tool('plan', '--json', '--keys', keys, flag, value).choices[0];
      equal(
        answer('size_table', { keys, by, [by]: value }).choice,
        planned,
        `${keys} keys, ${flag} ${value}`,
      );
      await page.check(`[name=by][value=${by}]`, { force: true });
      await page.fill('#keys', keys);
      await page.fill(`#${by}`, value);
      const [memory, rate, bits, probes] = await page.locator('#answer dd').allTextContents();
      const isNear = (text, number) =>
        Math.abs(
          parseFloat(
            text
              .replace(' × 10⁻', 'e-')
              .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, digit => '⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(digit)),
          ) /
            number -
            1,
        ) < 0.006;
      check(
        isNear(rate, 100 * planned.false_positive_rate) &&
          bits === planned.bits_per_key.toFixed(2) &&
          probes === String(planned.probes),
        `${keys} keys, ${flag} ${value}: ${memory} ${rate} ${bits} ${probes} is shown`,
      );
      const unit = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }[memory.split(' ')[1]];
      check(
        isNear(memory, planned.stored_bytes / unit),
        `${keys} keys, ${flag} ${value}: ${memory} is shown`,
      );
      same++;
    }
  }
  for (const tree of [
    ['1M', '10M', '100M'],
    ['100kx4', '1M', '1Gx2'],
    ['10M=20%', '100M=90%x3', '100M=0.9999'],
  ]) {
    for (const budget of ['64MiB', '1GiB']) {
      const planned = tool('plan', '--json', '--levels', tree.join(','), '--budget', budget);
      const levels = Object.fromEntries(
        tree.flatMap((level, at) => [
          [`${at}.keys`, /^\w+?(?=[x=]|$)/.exec(level)[0]],
          [`${at}.runs`, level.split('x')[1] ?? '1'],
          [`${at}.present`, /=([^x]+)/.exec(level)?.[1] ?? '0'],
        ]),
      );
      equal(answer('plan_levels', { budget, ...levels }), planned, `levels ${tree} in ${budget}`);
      const on = await newPage(
        {},
        `${url}#size?levels=${encodeURIComponent(tree.join(','))}&budget=${budget}`,
      );
      equal(
        await on.locator('[data-result$="bits per key"]').allTextContents(),
        planned.plans[0].levels.map(level =>
          level.skipped ? 'no filter' : level.bits_per_key.toFixed(2),
        ),
        `levels ${tree} in ${budget} are shown`,
      );
      same++;
      await on.close();
    }
  }
  figures.plans = same;
}

say('states, errors and the keyboard');
{
  const on = await newPage({}, `${url}#size?keys=25M&by=rate&rate=0.1%25&load=2M&kind=split-block`);
  const state = () =>
    on.evaluate(() => [
      document.getElementById('keys').value,
      document.getElementById('rate').value,
      document.querySelector('[name=kind]:checked').value,
      document.getElementById('answer').textContent,
    ]);
  const before = await state();
  equal(before.slice(0, 3), ['25M', '0.1%', 'split-block'], 'the state in the fragment');
  await on.fill('#keys', '26,000,000');
  const sent = await on.evaluate(() => location.href),
    changed = await state();
  check(before[3] !== changed[3], 'another number of keys, another answer');
  const other = await newPage({}, sent);
  equal(
    await other.evaluate(() => [
      document.getElementById('keys').value,
      document.getElementById('rate').value,
      document.querySelector('[name=kind]:checked').value,
      document.getElementById('answer').textContent,
    ]),
    changed,
    'a state that was sent',
  );
  await on.fill('#keys', 'many');
  check(
    /whole number/.test(await on.textContent('#keys-problem')) &&
      (await on.getAttribute('#keys', 'aria-invalid')) === 'true',
    'what is no number is said',
  );
  const isStale = () =>
    on.evaluate(() =>
      ['.answer', 'figure', '#kinds', '#code'].every(
        part => getComputedStyle(document.querySelector(`#size ${part}`)).visibility === 'hidden',
      ),
    );
  check(await isStale(), 'figures of the keys before cannot be read');
  await on.fill('#keys', '50M');
  check(!(await isStale()), 'and can when the keys are mended');
  await on.fill('#budget', 'much');
  const hasLevels = () =>
    on.evaluate(() =>
      ['[data-result]', '#levels-sentence', '#levels-code'].some(
        part =>
          getComputedStyle(document.querySelector(`#levels-view ${part}`)).visibility === 'visible',
      ),
    );
  check(!(await hasLevels()), 'nor those of the levels before');
  await on.fill('#budget', '1GiB');
  check(await hasLevels(), 'and those of the levels');
  await on.check('[name=kind][value=blocked]');
  await on.fill('#rate', '1%');
  await on.fill('#load', '100k');
  check(
    (await on.textContent('#sentence')).startsWith(
      'One lookup of an absent key in 100 goes wrong: 1,000 per second of 100,000.',
    ),
    await on.textContent('#sentence'),
  );
  check(
    (await on.textContent('#code')).includes('BloomFilter(50_000_000, fpr=0.01)'),
    'the line of Python is complete',
  );
  const memory = () => on.locator('#answer dd').first().textContent();
  const chosen = await memory();
  for (const by of ['bytes', 'bits', 'rate']) {
    await on.locator(`[name=by][value=${by}]`).dispatchEvent('click');
    equal(await memory(), chosen, `the same filter, sized by ${by}`);
  }
  await on.locator('[name=by][value=bytes]').dispatchEvent('click');
  for (const [bytes, shown] of [
    ['60 MB', '57.2 MiB'],
    ['64 KiB', '64.0 KiB'],
    ['20 GiB', '596 MiB'],
  ]) {
    await on.fill('#bytes', bytes);
    equal([await on.textContent('#by-problem'), await memory()], ['', shown], bytes);
  }
  check(
    /rest of the memory is not used/.test(await on.textContent('#sentence')),
    'more memory than a filter takes',
  );
  await on.locator('[name=by][value=bits]').dispatchEvent('click');
  await on.fill('#bits', '10');
  await on.fill('#keys', '99999999999999');
  check(/divide them/.test(await on.textContent('#keys-problem')), 'more keys than a filter takes');
  // From the top by Tab: the skip link, three views, then the form.
  await other.evaluate(() => {
    document.activeElement.blur();
    scrollTo(0, 0);
  });
  const seen = [];
  for (let i = 0; i < 7; i++) {
    await other.keyboard.press('Tab');
    seen.push(
      await other.evaluate(
        () =>
          document.activeElement.id ||
          document.activeElement.name ||
          document.activeElement.className,
      ),
    );
  }
  equal(
    seen,
    ['skip', 'to-size', 'to-inspect', 'to-lookup', 'keys', 'by', 'rate'],
    'the order of Tab',
  );
  await other.focus('[name=kind]:checked');
  await other.keyboard.press('ArrowUp');
  equal(
    await other.evaluate(() => document.activeElement.value),
    'classical',
    'kinds by arrow keys',
  );
  await on.close();
  await other.close();
}
