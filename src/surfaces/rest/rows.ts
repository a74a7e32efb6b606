import type { GovernedPlan, OutputColumn } from 'osl-compiler';
import { DataRowReader } from '../../engine/index.js';
import { columnsOf, describedColumn } from './columns.js';
import { type JsonBytes, PORTION_BYTES, type ValueWriter } from './json-bytes.js';
import { keyWriter, valueWriter } from './values.js';

/** How the rows of a plan become JSON. */
export interface RowShape {
  /** The answer's `columns`, as JSON; null where the rows that an answer rests on say what is redacted. */
  readonly columns: string | null;
  readonly fields: readonly RowField[];
}

interface RowField {
  /** `{"name":` or `,"name":`. */
  readonly lead: Uint8Array;
  readonly value: ValueWriter;
}

/** Gives bytes of their own: those of a small Buffer keep 8 KiB alive, as long as a plan. */
const UTF8 = new TextEncoder();

/** By the outputs of plans: plans that differ in values only are minted one by one, and share them. */
const SHAPES = new WeakMap<GovernedPlan['outputs'], RowShape>();

/** Worked out once for all plans of one template. */
export function shapeOf(plan: GovernedPlan): RowShape {
  const known = SHAPES.get(plan.outputs);
  if (known !== undefined) return known;
  const columns = columnsOf(plan);
  const varies = columns.some((c) => c.redactable.length > 0);
  const shape: RowShape = {
    columns: varies ? null : columnsJson(columns, (c) => c.redacted),
    fields: columns.map(({ name, type, passageKey }, i) => ({
      lead: UTF8.encode(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`),
      value: passageKey ? keyWriter(type) : valueWriter(type),
    })),
  };
  SHAPES.set(plan.outputs, shape);
  return shape;
}

/** The `columns` of one answer, as JSON. @param redacted of each whether something in it is */
export function answerColumns(plan: GovernedPlan, redacted: readonly boolean[]): string {
  return shapeOf(plan).columns ?? columnsJson(columnsOf(plan), (_, i) => redacted[i] === true);
}

function columnsJson(
  columns: readonly OutputColumn[],
  isRedacted: (column: OutputColumn, place: number) => boolean,
): string {
  return JSON.stringify(columns.map((c, i) => describedColumn(c, isRedacted(c, i))));
}

const COMMA = 0x2c;
const NEWLINE = 0x0a;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const NULL = Buffer.from('null');

/** Rows as elements of one array, or as lines (NDJSON). */
export type RowStyle = 'elements' | 'lines';

/** Writes DataRow messages as JSON objects, straight from their bytes. */
export class JsonRowWriter {
  readonly #fields: readonly RowField[];
  readonly #style: RowStyle;
  #first = true;

  constructor(shape: RowShape, style: RowStyle) {
    this.#fields = shape.fields;
    this.#style = style;
  }

  /** `dataRows` are whole messages with values in text format. */
  write(dataRows: Uint8Array, out: JsonBytes): void {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      if (this.#style === 'elements' && !this.#first) out.byte(COMMA);
      this.#first = false;
      this.#row(rows, out);
      if (this.#style === 'lines') out.byte(NEWLINE);
    }
  }

  /** As `write`, of rows that are large, and stops after each portion of them. */
  *portions(dataRows: Uint8Array, out: JsonBytes): Generator<void> {
    const rows = new DataRowReader(dataRows);
    while (rows.next()) {
      if (this.#style === 'elements' && !this.#first) out.byte(COMMA);
      this.#first = false;
      yield* this.#largeRow(rows, out);
      if (this.#style === 'lines') out.byte(NEWLINE);
    }
  }

  *#largeRow(row: DataRowReader, out: JsonBytes): Generator<void> {
    let due = row.rowStart + PORTION_BYTES;
    for (const { lead, value } of this.#fields) {
      out.copy(lead, 0, lead.length);
      if (!row.value()) out.copy(NULL, 0, NULL.length);
      else if (row.end - row.start > PORTION_BYTES)
        yield* value.portions(row.source, row.start, row.end, out);
      else value.write(row.source, row.start, row.end, out);
      if (row.end < due) continue;
      due = row.end + PORTION_BYTES;
      yield;
    }
    if (this.#fields.length === 0) out.byte(OPEN);
    out.byte(CLOSE);
  }

  #row(row: DataRowReader, out: JsonBytes): void {
    for (const { lead, value } of this.#fields) {
      out.copy(lead, 0, lead.length);
      if (row.value()) value.write(row.source, row.start, row.end, out);
      else out.copy(NULL, 0, NULL.length);
    }
    if (this.#fields.length === 0) out.byte(OPEN);
    out.byte(CLOSE);
  }
}
