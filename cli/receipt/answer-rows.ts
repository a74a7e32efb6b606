import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { elementOf, isArray, type ScalarType, type TypeName, typeNamed, typeRow } from 'osl-compiler/types';
import { elementInArray } from '../../src/ask/receipts/binary-text.js';
import { usage } from '../exit.js';
import { fieldsOf } from '../output.js';

/** An answer in a file, as REST sent it. */
interface StoredAnswer {
  readonly requestId: unknown;
  readonly rowCount: unknown;
  readonly columns: readonly AnswerColumn[];
  /** The rows as receipts digest them: DataRow messages with values in Postgres' text format. */
  rows(): AsyncGenerator<Buffer, void, void>;
}

/**
 * Reads an answer in JSON or NDJSON. Of NDJSON one row at a time is in memory; its columns are in the last line, so it
 * is read twice.
 *
 * @throws Failure if the file is not exactly one answer
 */
export async function readAnswer(file: string): Promise<StoredAnswer> {
  let last = '';
  let lines = 0;
  for await (const line of linesOf(file)) {
    last = line;
    lines += 1;
  }
  const whole = parsed(last, file);
  const isLines = Object.keys(whole).join() === 'trailer';
  if (!isLines && lines !== 1) throw notAnswer(file);
  const head = isLines ? fieldsOf(whole['trailer']) : whole;
  const columns = columnsIn(head, file);
  async function* rows(): AsyncGenerator<Buffer, void, void> {
    if (!isLines) {
      const all = membersOf(last).find(([name]) => name === 'rows')?.[1] ?? '';
      for (const row of elementsOf(all)) yield rowOf(row, columns, file);
      return;
    }
    let at = 0;
    for await (const line of linesOf(file)) {
      at += 1;
      if (at === lines) return;
      parsed(line, file);
      yield rowOf(line, columns, file);
    }
  }
  return { requestId: head['request_id'], rowCount: head['row_count'], columns, rows };
}

interface AnswerColumn {
  readonly name: string;
  readonly type: TypeName;
}

function linesOf(file: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
}

function notAnswer(file: string): Error {
  return usage(`${file} is not an answer in JSON or NDJSON, as REST sent it`);
}

function parsed(text: string, file: string): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    throw notAnswer(file);
  }
}

function columnsIn({ columns }: Readonly<Record<string, unknown>>, file: string): readonly AnswerColumn[] {
  const found = (Array.isArray(columns) ? columns : [null]).map((column) => {
    const { name, type } = fieldsOf(column);
    const known = typeof type === 'string' ? typeNamed(type) : null;
    return typeof name === 'string' && known !== null ? { name, type: known } : null;
  });
  if (found.includes(null)) throw usage(`${file} does not say what its columns are`);
  return found.filter((column) => column !== null);
}

function rowOf(json: string, columns: readonly AnswerColumn[], file: string): Buffer {
  const members = membersOf(json);
  if (members.length !== columns.length || members.some(([name], i) => name !== columns[i]?.name))
    throw notAnswer(file);
  return dataRow(columns.map(({ type }, i) => textOf(members[i]?.[1] ?? 'null', type)));
}

/** A DataRow message of the Postgres protocol. */
function dataRow(values: readonly (string | null)[]): Buffer {
  const fields = values.flatMap((value) => {
    const bytes = value === null ? null : Buffer.from(value);
    const length = Buffer.alloc(4);
    length.writeInt32BE(bytes?.length ?? -1);
    return bytes === null ? [length] : [length, bytes];
  });
  const head = Buffer.alloc(7);
  head[0] = 0x44; // D
  head.writeInt32BE(6 + fields.reduce((sum, part) => sum + part.length, 0), 1);
  head.writeInt16BE(values.length, 5);
  return Buffer.concat([head, ...fields]);
}

/** Text of a value in Postgres, given its text in a JSON answer. */
function textOf(json: string, type: TypeName): string | null {
  if (json === 'null') return null;
  return isArray(type) ? arrayText(json, elementOf(type)) : scalarText(json, type);
}

function scalarText(json: string, type: ScalarType): string {
  const form = typeRow(type).json;
  if (form === 'json' || form === 'jsonb') return json;
  if (form === 'bool') return json.slice(0, 1);
  const text: string = json.startsWith('"') ? JSON.parse(json) : json;
  switch (form) {
    case 'base64':
      return hexOf(text);
    case 'timestamp':
    case 'timestamptz':
      return text.replace(/^(\d{4}-\d\d-\d\d)T(.*?)(Z?)$/, (_, day, time, zone) =>
        zone === 'Z' ? `${day} ${time}+00` : `${day} ${time}`,
      );
    default:
      return text;
  }
}

/** @throws Failure if the text is not base64 as an encoder writes it */
function hexOf(text: string): string {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw usage('a value of type bytea is not base64');
  return `\\x${bytes.toString('hex')}`;
}

function arrayText(json: string, element: ScalarType): string {
  const isNested = (item: string): boolean => item.startsWith('[') && !element.startsWith('json');
  const items = elementsOf(json).map((item) => {
    if (item === 'null') return 'NULL';
    return isNested(item) ? arrayText(item, element) : elementInArray(scalarText(item, element));
  });
  return `{${items.join(',')}}`;
}

/** Members of a JSON object, each value as it is written: numbers have digits that parsing would lose. */
function membersOf(json: string): readonly (readonly [string, string])[] {
  const members: (readonly [string, string])[] = [];
  let at = afterBlanks(json, 1);
  while (at < json.length && json[at] !== '}') {
    const keyEnd = valueEnd(json, at);
    const start = afterBlanks(json, afterBlanks(json, keyEnd) + 1);
    const end = valueEnd(json, start);
    members.push([String(JSON.parse(json.slice(at, keyEnd))), json.slice(start, end)]);
    at = afterComma(json, end);
  }
  return members;
}

/** Elements of a JSON array as they are written. */
function elementsOf(json: string): readonly string[] {
  const elements: string[] = [];
  let at = afterBlanks(json, 1);
  while (at < json.length && json[at] !== ']') {
    const end = valueEnd(json, at);
    elements.push(json.slice(at, end));
    at = afterComma(json, end);
  }
  return elements;
}

function afterComma(json: string, at: number): number {
  const next = afterBlanks(json, at);
  return json[next] === ',' ? afterBlanks(json, next + 1) : next;
}

function afterBlanks(json: string, from: number): number {
  let at = from;
  while (/\s/.test(json[at] ?? '')) at += 1;
  return at;
}

/** End of the value that starts at `start` of a valid JSON text. */
function valueEnd(json: string, start: number): number {
  const first = json[start] ?? '';
  if (first === '"') return stringEnd(json, start);
  let at = start;
  if (first !== '{' && first !== '[') {
    while (at < json.length && !/[,\]}\s:]/.test(json[at] ?? '')) at += 1;
    return at;
  }
  let depth = 0;
  do {
    const char = json[at];
    if (char === '"') at = stringEnd(json, at) - 1;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    at += 1;
  } while (depth > 0 && at < json.length);
  return at;
}

function stringEnd(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}
