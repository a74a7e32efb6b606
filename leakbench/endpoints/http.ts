import { type EndpointAnswer, NotExpressible } from '../endpoint.js';

/** Headers that are new with each response. */
const RANDOM = ['date', 'x-request-id'];

/** Everything that a client receives: status, headers and body. */
export function partsOf({ status, headers }: Response, text: string): readonly string[] {
  const kept = [...headers].filter(([name]) => !RANDOM.includes(name));
  return [String(status), ...kept.map((header) => header.join(': ')), text];
}

/** The answer of an API that returns objects as rows; status, headers and body are its notices. */
export function objectsAnswer(
  rows: readonly Readonly<Record<string, unknown>>[],
  errors: unknown,
  response: Response,
  text: string,
): EndpointAnswer {
  return {
    columns: Object.keys(rows[0] ?? {}),
    rows: rows.map((row) => Object.values(row).map((cell) => JSON.stringify(cell))),
    tag: null,
    notices: partsOf(response, text),
    error: errors === undefined ? null : JSON.stringify(errors),
  };
}

/** A simple SELECT, for endpoints that have a form for no other. */
interface SimpleSelect {
  readonly table: string;
  readonly columns: readonly string[] | '*' | 'count';
  /** Columns that must equal a text or a number, all of them. */
  readonly where: readonly { readonly column: string; readonly value: string | number }[];
  readonly order: readonly { readonly column: string; readonly descends: boolean }[];
  readonly limit: number | null;
  readonly offset: number | null;
}

const NAMES = String.raw`[a-z]\w*(?:\s*,\s*[a-z]\w*)*`;
const SELECT = new RegExp(
  String.raw`^select (?<columns>${NAMES}|\*|count\(\*\)) from (?<table>\w+)` +
    String.raw`(?: where (?<where>.+?))?(?: order by (?<order>.+?))?(?: limit (?<limit>\d+))?(?: offset (?<offset>\d+))?$`,
);

/** Reads a SELECT of columns or a count, with equalities, an order and limits. @throws NotExpressible for any other */
export function parseSelect(sql: string): SimpleSelect {
  const parts = SELECT.exec(sql)?.groups;
  if (parts === undefined) throw new NotExpressible(sql);
  const { columns = '', table = '', where, order, limit, offset } = parts;
  return {
    table,
    columns: columns === '*' ? '*' : columns === 'count(*)' ? 'count' : columns.split(/\s*,\s*/),
    where: where?.split(' and ').map(equality) ?? [],
    order: order?.split(',').map(ordering) ?? [],
    limit: limit === undefined ? null : Number(limit),
    offset: offset === undefined ? null : Number(offset),
  };
}

function equality(text: string): SimpleSelect['where'][number] {
  const [, column = '', value = ''] = /^(\w+) = ('[^']*'|\d+)$/.exec(text.trim()) ?? [];
  if (column === '') throw new NotExpressible(text);
  return { column, value: value.startsWith("'") ? value.slice(1, -1) : Number(value) };
}

function ordering(text: string): SimpleSelect['order'][number] {
  const [, column = '', descends] = /^([a-z]\w*)( desc)?$/.exec(text.trim()) ?? [];
  if (column === '') throw new NotExpressible(text);
  return { column, descends: descends !== undefined };
}
