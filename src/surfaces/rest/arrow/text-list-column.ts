import { type Data, type DataType, Field, List } from 'apache-arrow';
import { arrayValue } from '../array-value.js';
import { JsonBytes } from '../json-bytes.js';
import { Offsets, Validity } from './buffers.js';
import { type Column, dataOf, noValue } from './column.js';

const element = arrayValue((source, start, end, out) => out.string(source, start, end));

/** As `ListColumn`, of arrays that come as Postgres' text: `{10.0.0.1,NULL}`. */
export class TextListColumn implements Column {
  readonly type: DataType;
  readonly #name: string;
  readonly #items: Column;
  readonly #offsets = new Offsets();
  readonly #validity = new Validity();
  readonly #json = new JsonBytes();
  #count = 0;

  constructor(items: Column, name: string) {
    this.type = new List(new Field('item', items.type, true));
    this.#name = name;
    this.#items = items;
  }

  value(source: Buffer, start: number, end: number): void {
    element(source, start, end, this.#json);
    const values: readonly unknown[] = JSON.parse(this.#json.take().toString('utf8'));
    for (const value of values) this.#append(value);
    this.#count += values.length;
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

  #append(value: unknown): void {
    if (value === null) {
      this.#items.null();
      return;
    }
    if (typeof value !== 'string') throw noValue(this.#name, 'an array of several dimensions');
    const bytes = Buffer.from(value, 'utf8');
    this.#items.value(bytes, 0, bytes.length);
  }
}
