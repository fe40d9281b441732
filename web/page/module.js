// The module's calls: text in, JSON out. Used by the page and by its worker.
class Module {
  constructor(compiled) {
    this.compiled = compiled;
    this.restart();
  }

  // Memory of an instance never shrinks, and a call that traps leaves it in an unknown state.
  restart() {
    this.exports = new WebAssembly.Instance(this.compiled).exports;
  }

  // A buffer in the module's memory, until the next call of it.
  buffer(length) {
    const at = this.exports.input(length) >>> 0;
    if (!at && length) throw new Error('the page has not enough memory for this file');
    return new Uint8Array(this.exports.memory.buffer, at, length);
  }

  // Passes a text unchanged, and an object as the fields of a form.
  put(value) {
    const text =
      typeof value === 'string'
        ? value
        : Object.entries(value)
            .map(([name, field]) => `${name}\0${field ?? ''}\0`)
            .join('');
    const bytes = new TextEncoder().encode(text);
    this.buffer(bytes.length).set(bytes);
  }

  // The answer of a call to an object, or to the text that was put before.
  call(name, value) {
    try {
      if (value !== undefined) this.put(value);
      const at = this.exports[name]() >>> 0;
      return JSON.parse(
        new TextDecoder().decode(
          new Uint8Array(this.exports.memory.buffer, at, this.exports.answer_len()),
        ),
      );
    } catch (error) {
      this.restart();
      return {
        error:
          error instanceof WebAssembly.RuntimeError || error instanceof RangeError
            ? 'the page ran out of memory'
            : error.message,
        lost: true,
      };
    }
  }
}
