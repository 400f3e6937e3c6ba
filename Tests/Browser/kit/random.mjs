// Random numbers that are the same for the same seed.

/** The value of ONWARD_SEED; a random seed if that variable is not set. */
export const runSeed = Number(process.env.ONWARD_SEED) || Math.floor(Math.random() * 999_999_999) + 1;

/** A generator (mulberry32). `next()` is in 0..<1. */
export class SeededRandom {
  constructor(seed) {
    this.state = seed >>> 0;
    this.next = this.next.bind(this);
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `low` to `high`, both included. */
  integer(low, high) { return low + Math.floor(this.next() * (high - low + 1)); }
  oneIn(count) { return this.integer(1, count) === 1; }
  pick(elements) { return elements[this.integer(0, elements.length - 1)]; }

  bytes(count) {
    const bytes = Buffer.alloc(count);
    for (let index = 0; index + 4 <= count; index += 4) bytes.writeUInt32LE((this.next() * 2 ** 32) >>> 0, index);
    return bytes;
  }
}
