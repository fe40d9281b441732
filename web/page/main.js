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

async function start() {
  if (typeof DecompressionStream === 'undefined')
    throw new Error('this browser is too old for this page: it needs DecompressionStream (2023)');
  const packed = Uint8Array.from(atob($('wasm').textContent), character => character.charCodeAt(0));
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
