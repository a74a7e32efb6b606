import type { Node } from '@pgsql/types';
import type { TableAttributeDocument } from '../../../policy/document.js';
import { nameFrom } from '../../../src/model/manifest/index.js';
import { calledName, firstTarget, literalOf, namesOf } from '../nodes.js';

/** Place where a policy of the database reads a value of the caller. */
export type CallerSource =
  | { readonly kind: 'setting'; readonly name: string }
  /** A claim of the token, with its path of keys. */
  | { readonly kind: 'claim'; readonly path: readonly string[] }
  | { readonly kind: 'database user' };

export interface CallerValue {
  readonly source: CallerSource;
  /** True for a list: a comparison holds if one of its values matches. */
  readonly list: boolean;
}

/** Settings in which PostgREST passes the claims of a token. */
const CLAIMS_SETTING = 'request.jwt.claims';
const CLAIM_SETTING = /^request\.jwt\.claim\.(.+)$/;

/** Functions of hosted services that return a claim, with the path of the claim. */
const CLAIM_FUNCTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['auth.uid', ['sub']],
  ['auth.user_id', ['sub']],
  ['auth.role', ['role']],
  ['auth.email', ['email']],
]);
const CLAIMS_FUNCTIONS: ReadonlySet<string> = new Set(['auth.jwt', 'auth.session']);

/** True for functions whose result is a value of the caller; their bodies are not analysed. */
export function isCallerFunction(schema: string | null, name: string): boolean {
  const whole = `${schema ?? 'pg_catalog'}.${name}`;
  return CLAIM_FUNCTIONS.has(whole) || CLAIMS_FUNCTIONS.has(whole);
}

/**
 * The value of the caller that an expression reads, or a list split from it; null for any other expression. Casts and
 * similar wrappers are ignored (see `unwrapped`).
 */
export function callerValueOf(node: Node): CallerValue | null {
  const inner = unwrapped(node);
  const path = claimPathOf(inner);
  if (path !== null) return path.length === 0 ? null : { source: { kind: 'claim', path }, list: false };
  if ('SQLValueFunction' in inner) {
    const { op } = inner.SQLValueFunction;
    const isUser = op === 'SVFOP_CURRENT_USER' || op === 'SVFOP_SESSION_USER' || op === 'SVFOP_USER';
    return isUser ? { source: { kind: 'database user' }, list: false } : null;
  }
  if (!('FuncCall' in inner)) return null;
  const { name, args } = callOf(inner);
  const claim = CLAIM_FUNCTIONS.get(name);
  if (claim !== undefined) return { source: { kind: 'claim', path: claim }, list: false };
  if (name === 'string_to_array' || name === 'regexp_split_to_array') {
    const [of] = args;
    const whole = of === undefined ? null : callerValueOf(of);
    return whole === null ? null : { ...whole, list: true };
  }
  const setting = settingOf(inner);
  if (setting === null || setting === CLAIMS_SETTING) return null;
  const [, named] = CLAIM_SETTING.exec(setting) ?? [];
  if (named !== undefined) return { source: { kind: 'claim', path: [named] }, list: false };
  return { source: { kind: 'setting', name: setting }, list: false };
}

/** The claim or setting that a set-returning function expands into rows; null for any other expression. */
export function callerListOf(node: Node): CallerValue | null {
  const inner = unwrapped(node);
  if (!('FuncCall' in inner)) return null;
  const { name, args } = callOf(inner);
  const [of] = args;
  if (of === undefined) return null;
  if (LISTING.has(name)) return asList(callerValueOf(of) ?? claimValue(of));
  return null;
}

const LISTING: ReadonlySet<string> = new Set([
  'jsonb_array_elements_text',
  'json_array_elements_text',
  'unnest',
]);

/** The claim that an expression reads as JSON; null for any other expression. */
export function claimValue(node: Node): CallerValue | null {
  const path = claimPathOf(unwrapped(node));
  return path === null || path.length === 0 ? null : { source: { kind: 'claim', path }, list: false };
}

export function asList(value: CallerValue | null): CallerValue | null {
  return value === null ? null : { ...value, list: true };
}

/** True if both values come from the same setting, claim or database user. */
export function sameSource(a: CallerSource, b: CallerSource): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Text for reports, such as `setting app.tenant_id`. `sourceFrom` parses it. */
export function sourceText(source: CallerSource): string {
  switch (source.kind) {
    case 'setting':
      return `setting ${source.name}`;
    case 'claim':
      return `claim ${source.path.map((key) => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))).join('.')}`;
    case 'database user':
      return DATABASE_USER;
  }
}

const DATABASE_USER = 'the database user';
const KEYS = /^(?:[\w-]+|"(?:[^"\\]|\\.)*")(?:\.(?:[\w-]+|"(?:[^"\\]|\\.)*"))*$/;

/** Parses a text written by `sourceText`; null for any other text. */
export function sourceFrom(text: string): CallerSource | null {
  if (text === DATABASE_USER) return { kind: 'database user' };
  const [, kind, rest = ''] = /^(setting|claim) (.+)$/.exec(text) ?? [];
  if (kind === 'setting') return { kind, name: rest };
  if (kind !== 'claim' || !KEYS.test(rest)) return null;
  const path = [...rest.matchAll(/[\w-]+|"(?:[^"\\]|\\.)*"/g)].map(([key]) =>
    key.startsWith('"') ? String(JSON.parse(key)) : key,
  );
  return { kind, path };
}

/** The path of the claim that a node reads; empty for all claims, null for any other node. */
function claimPathOf(node: Node): readonly string[] | null {
  const inner = unwrapped(node);
  if ('FuncCall' in inner) {
    const { name } = callOf(inner);
    return CLAIMS_FUNCTIONS.has(name) || settingOf(inner) === CLAIMS_SETTING ? [] : null;
  }
  if (!('A_Expr' in inner)) return null;
  const { lexpr, rexpr, name } = inner.A_Expr;
  const [operator] = namesOf(name);
  const literal = rexpr === undefined ? null : literalOf(rexpr);
  const before = lexpr === undefined || literal === null ? null : claimPathOf(lexpr);
  if (before === null || literal === null) return null;
  if (operator === '->' || operator === '->>') return [...before, literal];
  if (operator === '#>' || operator === '#>>')
    return [...before, ...literal.replace(/^\{|\}$/g, '').split(',')];
  return null;
}

/** Removes casts that do not shorten, NULLIF(…, ''), COALESCE with an empty default, and SELECT without FROM. */
export function unwrapped(node: Node): Node {
  if ('TypeCast' in node && node.TypeCast.arg !== undefined)
    return node.TypeCast.typeName?.typmods === undefined ? unwrapped(node.TypeCast.arg) : node;
  if ('A_Expr' in node && node.A_Expr.kind === 'AEXPR_NULLIF') {
    const { lexpr, rexpr } = node.A_Expr;
    if (lexpr !== undefined && rexpr !== undefined && literalOf(rexpr) === '') return unwrapped(lexpr);
  }
  if ('CoalesceExpr' in node) {
    const [first, second] = node.CoalesceExpr.args ?? [];
    // Like a missing value, an empty text or false as the default matches nothing.
    if (first !== undefined && second !== undefined && isNothing(second)) return unwrapped(first);
  }
  if ('SubLink' in node && node.SubLink.subLinkType === 'EXPR_SUBLINK') {
    const { subselect } = node.SubLink;
    const select = subselect !== undefined && 'SelectStmt' in subselect ? subselect.SelectStmt : null;
    const target = select === null ? null : firstTarget(select);
    const alone = select?.fromClause === undefined && select?.whereClause === undefined;
    if (alone && target !== null) return unwrapped(target);
  }
  return node;
}

function isNothing(node: Node): boolean {
  if ('TypeCast' in node && node.TypeCast.arg !== undefined) return isNothing(node.TypeCast.arg);
  if (!('A_Const' in node)) return false;
  return (
    node.A_Const.sval?.sval === '' ||
    (node.A_Const.boolval !== undefined && node.A_Const.boolval.boolval !== true)
  );
}

/** The name of a called function, with its schema unless that is pg_catalog, and the arguments. */
function callOf(node: Node): { readonly name: string; readonly args: readonly Node[] } {
  if (!('FuncCall' in node)) return { name: '', args: [] };
  const { schema, name } = calledName(node.FuncCall);
  return { name: schema === null ? name : `${schema}.${name}`, args: node.FuncCall.args ?? [] };
}

function settingOf(node: Node): string | null {
  const { name, args } = callOf(node);
  return name === 'current_setting' && args[0] !== undefined ? literalOf(args[0]) : null;
}

/** An attribute that each subject needs, and the place where row security reads its value. */
export interface CallerAttribute {
  readonly name: string;
  readonly source: CallerSource;
  readonly list: boolean;
}

/** The attributes of an imported policy: values of callers, and values read from entities. */
export class ImportedAttributes {
  readonly #callers: CallerAttribute[] = [];
  readonly #tables = new Map<string, TableAttributeDocument>();

  get callers(): readonly CallerAttribute[] {
    return this.#callers;
  }

  get tables(): ReadonlyMap<string, TableAttributeDocument> {
    return this.#tables;
  }

  /** The attributes that a filter names, and those that they need in turn. */
  needsOf(filter: string): ReadonlySet<string> {
    return attributesNamed([filter], (name) => this.#tables.get(name)?.rows);
  }

  /**
   * The name of the attribute for a value of the caller; adds the attribute if it is new. A setting that is compared as
   * one value and as a list becomes two attributes: the one value equals none of the values in the list.
   */
  caller({ source, list }: CallerValue): string {
    const found = this.#callers.find((one) => one.list === list && sameSource(one.source, source));
    if (found !== undefined) return found.name;
    const name = this.#unused(nameOfSource(source));
    this.#callers.push({ name, source, list });
    return name;
  }

  /** The name of the attribute with this definition; adds the attribute if it is new. */
  table(document: TableAttributeDocument): string {
    for (const [name, known] of this.#tables) if (sameReading(known, document)) return name;
    const { on, column } = document;
    const name = this.#unused(column === undefined ? `has_${on}` : `${on}_${column}`);
    this.#tables.set(name, document);
    return name;
  }

  #unused(wanted: string): string {
    const taken = new Set([...this.#callers.map(({ name }) => name), ...this.#tables.keys()]);
    const base = nameFrom(wanted);
    for (let n = 1; ; n++) {
      const name = n === 1 ? base : `${base}_${n}`;
      if (!taken.has(name)) return name;
    }
  }
}

/** The attributes that filters name or need in turn. @param rowsOf returns the row filter of an attribute */
export function attributesNamed(
  filters: Iterable<string | undefined>,
  rowsOf: (name: string) => string | undefined,
): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (text: string | undefined): void => {
    for (const [, name = ''] of text?.matchAll(/attribute\('([^']+)'\)/g) ?? []) {
      if (found.has(name)) continue;
      found.add(name);
      add(rowsOf(name));
    }
  };
  for (const text of filters) add(text);
  return found;
}

function nameOfSource(source: CallerSource): string {
  switch (source.kind) {
    case 'setting':
      return source.name.split('.').at(-1) ?? source.name;
    case 'claim':
      return source.path.at(-1) ?? 'claim';
    case 'database user':
      return 'database_user';
  }
}

function sameReading(a: TableAttributeDocument, b: TableAttributeDocument): boolean {
  return a.on === b.on && a.column === b.column && a.rows === b.rows;
}
