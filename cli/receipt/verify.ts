import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { elementOf, isArray, type ScalarType, type TypeName, typeNamed, typeRow } from 'osl-compiler/types';
import { openCheckpoint, type ProvenCheckpoint, parseVerifierKey } from '../../audit/index.js';
import { elementInArray } from '../../src/ask/receipts/binary-text.js';
import { rowDigest } from '../../src/ask/receipts/digests.js';
import { keysIn, witnessedNotes } from '../audit/log.js';
import { usage } from '../exit.js';
import { fieldsOf, print, printJson, visible } from '../output.js';
import { notHolding, type ProvenReceipt, provenReceipt, questionOf, saltOf } from './proven-record.js';

/**
 * Result of checking the checkpoints of a witness for the record of a receipt.
 *
 * - `same`: the witness has the receipt's checkpoint.
 * - `later`: it has another checkpoint that is large enough to include the record. Whether that belongs to the same log
 *   can be checked only with the records (`osl audit verify`).
 * - `earlier`: its newest checkpoint is from before the record.
 * - `nothing`: it has no checkpoint of this log.
 */
interface WitnessVerdict {
  readonly kind: 'same' | 'later' | 'earlier' | 'nothing';
  /** Time of the witness's newest checkpoint, RFC 3339; null if there is no checkpoint, or it has no time. */
  readonly time: string | null;
}

/**
 * Reads the checkpoints stored by a witness and compares them with the receipt's.
 *
 * @param place address of the witness, as for `osl audit verify --witness`
 * @param seq number of the receipt's record
 * @throws Failure if the witness has a different log with the same name
 */
async function witnessed(
  place: string,
  { origin, size, root }: ProvenCheckpoint,
  seq: number,
  keys: readonly string[],
): Promise<WitnessVerdict> {
  const trusted = keys.map(parseVerifierKey);
  const kept = (await witnessedNotes(place)).flatMap((note) => {
    const checkpoint = trusted.map((key) => openCheckpoint(note, key)).find((c) => c !== null);
    return checkpoint?.origin === origin ? [checkpoint] : [];
  });
  const same = kept.find((checkpoint) => checkpoint.size === size);
  if (same !== undefined && same.root.toString('base64') !== root)
    throw notHolding(`the witness has another log with ${size} records under this name`);
  const newest = kept.toSorted((a, b) => b.size - a.size)[0];
  if (newest === undefined) return { kind: 'nothing', time: null };
  const kind = same !== undefined ? 'same' : newest.size > seq ? 'later' : 'earlier';
  return { kind, time: newest.time };
}

export interface VerifyReceiptFlags {
  readonly key: string;
  readonly salt?: string;
  readonly rows?: string;
  readonly question?: string;
  readonly witness?: string;
  readonly json?: true;
}

/** Results of comparing a query and rows with a receipt. */
interface ReceiptComparison {
  readonly question: 'same' | 'not compared';
  readonly rows: 'same' | 'not compared';
}

/** Checks a receipt, offline except for a given witness. @throws Failure if the receipt is not valid */
export async function runVerifyReceipt(file: string, flags: VerifyReceiptFlags): Promise<void> {
  const proven = provenReceipt(file, flags.key);
  const compared = await compare(proven, file, flags);
  const { record, checkpoint } = proven;
  const witness =
    flags.witness === undefined
      ? null
      : await witnessed(flags.witness, checkpoint, record.seq, keysIn(flags.key));
  if (flags.json) printJson({ valid: true, record, checkpoint, compared, witness });
  else for (const line of keysOfFile(proven, compared, witness)) print(visible(line));
}

async function compare(
  proven: ProvenReceipt,
  file: string,
  { salt, rows, question }: VerifyReceiptFlags,
): Promise<ReceiptComparison> {
  if (question !== undefined) questionOf(question, proven, saltOf(file, salt));
  if (rows !== undefined) await requireRows(rows, proven, saltOf(file, salt));
  return {
    question: question === undefined ? 'not compared' : 'same',
    rows: rows === undefined ? 'not compared' : 'same',
  };
}

async function requireRows(
  file: string,
  { record, receipt }: ProvenReceipt,
  salt: Uint8Array,
): Promise<void> {
  const answer = await readAnswer(file);
  if (answer.requestId !== record.request_id || answer.rowCount !== record.rows)
    throw notHolding('the answer is that of another request, or has another number of rows');
  const digest = rowDigest(receipt.order, salt, answer.columns);
  for await (const row of answer.rows()) digest.add(row);
  if (digest.digest() !== receipt.rows) throw notHolding('the rows are not those of the answer');
}

function* keysOfFile(
  { record, receipt, checkpoint }: ProvenReceipt,
  compared: ReceiptComparison,
  witness: WitnessVerdict | null,
): Generator<string> {
  const { subject, chain, ts, surface, versions, objects, rows, standby, seq } = record;
  const { masked, masked_omitted, truncated, as_of } = receipt;
  const { origin, size, time } = checkpoint;
  const through = chain.length > 1 ? ` through ${chain.slice(1).join(', ')}` : '';
  const more = masked_omitted > 0 ? `, and ${masked_omitted} more` : '';
  const doubt = witness === null ? '' : doubtOf(witness);
  yield `valid${doubt}: record ${seq} of ${origin}, signed at ${time ?? '?'} with ${size} records`;
  yield `  caller    ${chain[0] ?? subject ?? '?'}${through}`;
  yield `  answered  ${ts}, over ${surface}: ${rows ?? '?'} rows${truncated ? ', truncated' : ''}`;
  const from = standby === undefined ? '' : `, from standby ${standby.name}`;
  if (as_of !== null) yield `  as of     ${as_of}${from}`;
  yield `  versions  manifest ${versions?.manifest ?? '?'}, policy ${versions?.policy ?? '?'}`;
  yield `  objects   ${objects.join(', ')}`;
  yield `  masked    ${masked.length === 0 ? 'no column' : masked.join(', ')}${more}`;
  yield `  question  ${compared.question}`;
  yield `  rows      ${compared.rows}`;
  if (witness !== null) yield `  witness   ${WITNESS_LINES[witness.kind]}`;
}

function doubtOf({ kind, time }: WitnessVerdict): string {
  if (kind === 'same' || kind === 'later') return '';
  return `, but not witnessed${time === null ? '' : ` since ${time}`}`;
}

const WITNESS_LINES: Readonly<Record<WitnessVerdict['kind'], string>> = {
  same: 'keeps this checkpoint',
  later:
    'keeps another checkpoint with this record: osl audit verify --witness tells whether it is of this log',
  earlier: 'keeps no checkpoint with this record',
  nothing: 'keeps no checkpoint of this log',
};

/** An answer stored in a file, in the form in which REST sent it. */
interface StoredAnswer {
  readonly requestId: unknown;
  readonly rowCount: unknown;
  readonly columns: readonly ReceiptColumn[];
  /** The rows as receipts hash them: DataRow messages with values in Postgres' text format. */
  rows(): AsyncGenerator<Buffer, void, void>;
}

/**
 * Reads an answer in JSON or NDJSON. NDJSON is read twice, because its columns are in the last line; only one row at a
 * time is in memory.
 *
 * @throws Failure if the file is not exactly one answer
 */
export async function readAnswer(file: string): Promise<StoredAnswer> {
  let last = '';
  let lines = 0;
  for await (const line of fileLines(file)) {
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
    for await (const line of fileLines(file)) {
      at += 1;
      if (at === lines) return;
      parsed(line, file);
      yield rowOf(line, columns, file);
    }
  }
  return { requestId: head['request_id'], rowCount: head['row_count'], columns, rows };
}

interface ReceiptColumn {
  readonly name: string;
  readonly type: TypeName;
}

function fileLines(file: string): AsyncIterable<string> {
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

function columnsIn({ columns }: Readonly<Record<string, unknown>>, file: string): readonly ReceiptColumn[] {
  const found = (Array.isArray(columns) ? columns : [null]).map((column) => {
    const { name, type } = fieldsOf(column);
    const known = typeof type === 'string' ? typeNamed(type) : null;
    return typeof name === 'string' && known !== null ? { name, type: known } : null;
  });
  if (found.includes(null)) throw usage(`${file} does not say what its columns are`);
  return found.filter((column) => column !== null);
}

function rowOf(json: string, columns: readonly ReceiptColumn[], file: string): Buffer {
  const members = membersOf(json);
  if (members.length !== columns.length || members.some(([name], i) => name !== columns[i]?.name))
    throw notAnswer(file);
  return dataRow(columns.map(({ type }, i) => textOf(members[i]?.[1] ?? 'null', type)));
}

/** Encodes a DataRow message of the Postgres protocol. */
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

/** Converts a value of a JSON answer to Postgres' text format; null for NULL. */
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

/** Converts base64 to the text of a bytea. @throws Failure if the base64 is not canonical */
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

/** Members of a JSON object, with each value as raw text, because parsing would lose digits of numbers. */
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

/** Elements of a JSON array, as raw text. */
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

/** Returns the index after the value that starts at `start` in a valid JSON text. */
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
