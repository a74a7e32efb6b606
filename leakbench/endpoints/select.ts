import { NotExpressible } from '../endpoint.js';

/** A simple SELECT, for endpoints that have a form for no other. */
export interface Select {
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
export function parseSelect(sql: string): Select {
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

function equality(text: string): Select['where'][number] {
  const [, column = '', value = ''] = /^(\w+) = ('[^']*'|\d+)$/.exec(text.trim()) ?? [];
  if (column === '') throw new NotExpressible(text);
  return { column, value: value.startsWith("'") ? value.slice(1, -1) : Number(value) };
}

function ordering(text: string): Select['order'][number] {
  const [, column = '', descends] = /^([a-z]\w*)( desc)?$/.exec(text.trim()) ?? [];
  if (column === '') throw new NotExpressible(text);
  return { column, descends: descends !== undefined };
}
