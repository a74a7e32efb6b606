import { type Data, type DataType, Field, List } from 'apache-arrow';
import { ArrayReader } from '../array-value.js';
import { PORTION_BYTES } from '../json-bytes.js';
import { Offsets, Validity } from './buffers.js';
import { type Column, dataOf, noValue } from './column.js';

/** As `ListColumn`, of arrays that come as Postgres' text: `{10.0.0.1,NULL}`. */
export class TextListColumn implements Column {
  readonly type: DataType;
  readonly #name: string;
  readonly #items: Column;
  readonly #offsets = new Offsets();
  readonly #validity = new Validity();
  #count = 0;

  constructor(items: Column, name: string) {
    this.type = new List(new Field('item', items.type, true));
    this.#name = name;
    this.#items = items;
  }

  value(source: Buffer, start: number, end: number): void {
    for (const _ of this.portions(source, start, end));
  }

  *portions(source: Buffer, start: number, end: number): Generator<void> {
    const reader = new ArrayReader(source, start, end);
    let depth = 0;
    let due = start + PORTION_BYTES;
    for (let token = reader.next(PORTION_BYTES); token !== null; token = reader.next(PORTION_BYTES)) {
      if (token === 'open') depth += 1;
      if (depth > 1) throw noValue(this.#name, 'an array of several dimensions');
      if (token === 'null') this.#items.null();
      if (token === 'element') {
        const item = reader.element();
        this.#items.value(item, 0, item.length);
      }
      if (token === 'null' || token === 'element') this.#count += 1;
      if (reader.at < due) continue;
      due = reader.at + PORTION_BYTES;
      yield;
    }
    this.#offsets.push(this.#count);
    this.#validity.valid();
  }

  null(): void {
    this.#offsets.push(this.#count);
    this.#validity.null();
  }

  data(): Data {
    return dataOf(this.type, this.#validity, this.#offsets.view(), undefined, [this.#items.data()]);
  }

  clear(): void {
    this.#offsets.clear();
    this.#validity.clear();
    this.#items.clear();
    this.#count = 0;
  }
}
