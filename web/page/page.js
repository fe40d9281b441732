// What all views use.
const $ = id => document.getElementById(id);

// An element with attributes, properties (`on…` listeners among them) and children.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== 'string') element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';
const power = exponent => {
  const digits = [...String(Math.abs(exponent))].map(digit => SUPERSCRIPTS[digit]);
  return `10${exponent < 0 ? '⁻' : ''}${digits.join('')}`;
};

function significant(number, digits = 3) {
  if (number === 0) return '0';
  if (number >= 10 ** digits) return number < 1e15 ? whole.format(number) : number.toExponential(2);
  if (number < 1e-4) {
    const exponent = Math.floor(Math.log10(number));
    return `${(number / 10 ** exponent).toPrecision(digits)} × ${power(exponent)}`;
  }
  const text = number.toPrecision(digits);
  return text.includes('e') ? whole.format(number) : text;
}

const percent = rate => `${significant(100 * rate)} %`;

function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at++; }
  return `${at ? bytes.toPrecision(bytes >= 1000 ? 4 : 3) : bytes} ${units[at]}`;
}

const counted = (count, noun) => `${whole.format(count)} ${noun}${count === 1 ? '' : 's'}`;

function snippet(name, text) {
  const button = h('button', {
    type: 'button', 'aria-label': `Copy the ${name} line`, onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    },
  }, 'Copy');
  const code = h('pre', {}, text);
  return h('div', { class: 'snippet' }, h('div', {}, h('span', {}, name), button), code);
}

// Shows an error next to its input, or none.
function problem(input, place, text) {
  input.setAttribute('aria-invalid', String(!!text));
  place.textContent = text ?? '';
}

// The URL's fragment holds the state of the view `size`, so that it can be sent:
// `#size?keys=1M&by=bits&bits=10`.
const readState = () => {
  const [view, query] = location.hash.slice(1).split('?');
  return {
    view: ['size', 'inspect', 'lookup'].includes(view) ? view : 'size',
    query: new URLSearchParams(query),
  };
};

function writeState(query) {
  // A colon, a comma or a slash needs no escape in a fragment.
  const text = query
    .toString()
    .replace(/%2C/g, ',')
    .replace(/%3A/g, ':')
    .replace(/%2F/g, '/')
    .replace(/%3D/g, '=');
  history.replaceState(null, '', `#size?${text}`);
}
