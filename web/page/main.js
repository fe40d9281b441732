// Views, and the start of the page.
function showView() {
  const { view, query } = readState();
  for (const name of ['size', 'inspect', 'lookup']) {
    $(name).hidden = name !== view;
    if (name === view) $(`to-${name}`).setAttribute('aria-current', 'page');
    else $(`to-${name}`).removeAttribute('aria-current');
  }
  if (view !== 'size') return;
  readSize(query);
  readLevels(query);
  showSize();
  showLevels();
}

addEventListener('hashchange', showView);
for (const link of document.querySelectorAll('nav a'))
  link.addEventListener('click', () => scrollTo(0, 0));

// The bytes of a text that build.sh made: their number, then five digits for each four bytes.
function bytesOf(text) {
  const [length, digits] = text.trim().split(' ');
  const values = new Uint8Array(128);
  let count = 0;
  for (let code = 33; code < 127; code++)
    if (!'"$&\'<>\\`~'.includes(String.fromCharCode(code))) values[code] = count++;
  const bytes = new DataView(new ArrayBuffer((digits.length / 5) * 4));
  for (let at = 0; at < digits.length; at += 5) {
    let number = 0;
    for (let i = at; i < at + 5; i++) number = number * 85 + values[digits.charCodeAt(i)];
    bytes.setUint32((at / 5) * 4, number);
  }
  return new Uint8Array(bytes.buffer, 0, length);
}

async function start() {
  if (typeof DecompressionStream === 'undefined')
    throw new Error('this browser is too old for this page: it needs DecompressionStream (2023)');
  const packed = bytesOf($('wasm').textContent);
  const unpacked = new Response(
    new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip')),
  );
  filters = new Module(await WebAssembly.compile(await unpacked.arrayBuffer()));
  showView();
  performance.mark('ready');
}

start().catch(error =>
  $('main').prepend(h('div', { class: 'alert', role: 'alert' }, error.message)),
);
