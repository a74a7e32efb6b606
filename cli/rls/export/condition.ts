import {
  type AttributeMatch,
  arrayOf,
  columnOf,
  type Expr,
  isArray,
  predicateSql,
  quoteIdentifier,
  tableSql,
} from 'osl-compiler';
import { attributesOf, type PolicySnapshot, type TableAttribute } from '../../../policy/index.js';
import type { CallerAttribute } from '../import/caller-value.js';
import { type AttributeSources, Inexpressible, presenceSql, valueSql } from './attribute-sources.js';

/** An attribute whose values a function in the database reads. */
interface ReadAttribute {
  /** SQL that calls the function. */
  readonly call: string;
  /** True if the function returns one truth value, false if it returns the values of a column. */
  readonly exists: boolean;
  /** Attributes of the caller that the function needs. */
  readonly needs: ReadonlySet<string>;
}

interface ExportedAttributes {
  /** The function that reads an attribute; null for an attribute of the caller. @throws Inexpressible */
  read(name: string): ReadAttribute | null;
  /** @throws Inexpressible */
  caller(name: string): CallerAttribute;
}

/**
 * Writes a row filter as the condition of a policy. The condition accepts the rows that the gateway shows, and no row
 * for a caller who lacks an attribute that the filter names.
 *
 * @throws Inexpressible
 */
export function conditionSql(filter: Expr, attributes: ExportedAttributes): string {
  const parts = filter.kind === 'and' && absenceOf(filter) === null ? filter.args : [filter];
  const negated = new Set<string>();
  addNegated(filter, true, attributes, negated);
  const guards = [...callerAttributesOf(filter, attributes)].flatMap((name) => {
    if (negated.has(name)) return presenceSql(attributes.caller(name), true);
    return isNeverTrue(filter, name, attributes) ? [] : presenceSql(attributes.caller(name), false);
  });
  return [...parts.map((part) => text(part, attributes)), ...guards].join(' and ');
}

/**
 * Adds to `found` the attributes of callers in expressions where fewer matching values can mean more accepted rows,
 * such as under NOT. The filter must then accept no row if the value has an unexpected form, such as a list.
 */
function addNegated(expr: Expr, positive: boolean, attributes: ExportedAttributes, found: Set<string>): void {
  switch (expr.kind) {
    case 'and':
    case 'or':
      for (const arg of expr.args) addNegated(arg, positive, attributes, found);
      break;
    case 'not':
      addNegated(expr.arg, !positive, attributes, found);
      break;
    case 'attribute_match':
      if (positive) break;
      for (const name of callerAttributesOf(expr, attributes)) found.add(name);
      break;
    default:
      for (const name of callerAttributesOf(expr, attributes)) found.add(name);
  }
}

/** The attributes of callers that a filter names, directly or through attributes read by functions. */
function callerAttributesOf(filter: Expr, attributes: ExportedAttributes): ReadonlySet<string> {
  return new Set(
    [...attributesOf(filter)].flatMap((name) => {
      const read = attributes.read(name);
      return read === null ? [name] : [...read.needs];
    }),
  );
}

function text(expr: Expr, attributes: ExportedAttributes): string {
  const of = (inner: Expr): string => text(inner, attributes);
  switch (expr.kind) {
    case 'and': {
      const absent = absenceOf(expr);
      if (absent !== null && attributes.read(absent) === null)
        return `((select ${valueSql(attributes.caller(absent))}) is null)`;
      return `(${expr.args.map(of).join(' and ')})`;
    }
    case 'or': {
      const present = presenceOf(expr);
      if (present !== null && attributes.read(present) === null)
        return presenceSql(attributes.caller(present), false);
      return amongText(expr.args, attributes) ?? `(${expr.args.map(of).join(' or ')})`;
    }
    case 'not':
      return `(not ${of(expr.arg)})`;
    case 'attribute_match': {
      const read = attributes.read(expr.attribute);
      if (read?.exists === true && expr.arg.kind === 'boolean' && expr.arg.value)
        return `(select ${read.call})`;
      return predicateSql(expr, (matched) => matchText(matched, attributes));
    }
    default:
      return predicateSql(expr, (matched) => matchText(matched, attributes));
  }
}

type WrittenMatch = Parameters<Parameters<typeof predicateSql>[1]>[0];

function matchText({ attribute, arg, operator, type }: WrittenMatch, attributes: ExportedAttributes): string {
  const element = type.slice(0, -'[]'.length);
  const read = attributes.read(attribute);
  if (read !== null)
    return read.exists
      ? `(${arg} and (select ${read.call}))`
      : `(${arg} ${operator} any (array(select ${read.call})::${type}))`;
  const caller = attributes.caller(attribute);
  const value = valueSql(caller);
  if (!caller.list) return `(${arg} ${operator} (select ${cast(value, element)}))`;
  if (caller.source.kind === 'claim')
    return `(${arg} ${operator} any (array(select jsonb_array_elements_text(${value}))::${type}))`;
  // The outer cast leaves the value unchanged; without it, Postgres would parse the operand as a subquery.
  return `(${arg} ${operator} any ((select string_to_array(${value}, ','))::${type}))`;
}

function cast(value: string, type: string): string {
  return type === 'text' ? value : `${value}::${type}`;
}

/** Writes an OR that compares one attribute with constants as `value = ANY (…)`; returns null for any other OR. */
function amongText(args: readonly Expr[], attributes: ExportedAttributes): string | null {
  const matches = args.filter(isOfConstant);
  const [first] = matches;
  if (first === undefined || matches.length < args.length || matches.length < 2) return null;
  const { attribute, arg } = first;
  if (attributes.read(attribute) !== null || matches.some((m) => m.attribute !== attribute)) return null;
  const caller = attributes.caller(attribute);
  if (caller.list || matches.some((m) => m.arg.type !== arg.type) || isArray(arg.type)) return null;
  const constants = matches.map((m) => predicateSql(m.arg, () => ''));
  return `((select ${cast(valueSql(caller), arg.type)}) = any (array[${constants.join(', ')}]::${arrayOf(arg.type)}))`;
}

function isOfConstant(expr: Expr): expr is AttributeMatch {
  return expr.kind === 'attribute_match' && expr.arg.kind === 'literal';
}

/** The attribute in `'' = attribute(…) or true`, which requires that it is present; otherwise null. */
function presenceOf(expr: Expr): string | null {
  return expr.kind === 'or' ? besideBoolean(expr.args, true) : null;
}

/** The attribute in `'' = attribute(…) and false`, which states that it is missing; otherwise null. */
function absenceOf(expr: Expr): string | null {
  return expr.kind === 'and' ? besideBoolean(expr.args, false) : null;
}

function besideBoolean(args: readonly Expr[], value: boolean): string | null {
  const [match, constant, more] = args;
  if (match === undefined || constant === undefined || more !== undefined || !isOfConstant(match))
    return null;
  return constant.kind === 'boolean' && constant.value === value ? match.attribute : null;
}

/** True if, for a caller who lacks the attribute, `expr` is false or NULL in every row. */
function isNeverTrue(expr: Expr, name: string, attributes: ExportedAttributes): boolean {
  const of = (inner: Expr): boolean => isNeverTrue(inner, name, attributes);
  switch (expr.kind) {
    case 'attribute_match':
      return expr.attribute === name || attributes.read(expr.attribute)?.needs.has(name) === true;
    case 'and':
      return absenceOf(expr) !== name && expr.args.some(of);
    case 'or':
      return presenceOf(expr) === name || expr.args.every(of);
    case 'not':
      return isNeverFalse(expr.arg, name, attributes);
    default:
      return false;
  }
}

/** True if, for a caller who lacks the attribute, `expr` is true or NULL in every row. */
function isNeverFalse(expr: Expr, name: string, attributes: ExportedAttributes): boolean {
  const of = (inner: Expr): boolean => isNeverFalse(inner, name, attributes);
  switch (expr.kind) {
    case 'attribute_match':
      return expr.attribute === name && isNullIfMissing(attributes.caller(name));
    case 'and':
      return absenceOf(expr) === name || expr.args.every(of);
    case 'or':
      return presenceOf(expr) === null && expr.args.some(of);
    case 'not':
      return isNeverTrue(expr.arg, name, attributes);
    default:
      return false;
  }
}

/** False for a list in claims, which becomes an empty list if it is missing. */
function isNullIfMissing({ source, list }: CallerAttribute): boolean {
  return !list || source.kind !== 'claim';
}

/** Schema of the functions that an export creates. */
export const EXPORT_SCHEMA = 'osl_export';

/** A function that reads the values of an attribute for the caller. */
export interface ReadingFunction {
  readonly name: string;
  readonly returns: string;
  readonly body: string;
}

/**
 * Translates the attributes of a policy to SQL. Attributes read from entities become SECURITY DEFINER functions that
 * run as the tables' owner, since the gateway, too, reads such attributes regardless of grants.
 */
export class Readings implements ExportedAttributes {
  readonly #connector: string;
  readonly #snapshot: PolicySnapshot;
  readonly #sources: AttributeSources;
  readonly #functions = new Map<string, ReadingFunction>();

  constructor(connector: string, snapshot: PolicySnapshot, sources: AttributeSources) {
    this.#connector = connector;
    this.#snapshot = snapshot;
    this.#sources = sources;
  }

  /** Functions called in conditions, each after the functions that it calls itself. */
  get functions(): readonly ReadingFunction[] {
    return [...this.#functions.values()];
  }

  caller(name: string) {
    return this.#sources.of(name);
  }

  read(name: string): ReadAttribute | null {
    const attribute = this.#snapshot.tableAttributes.get(name);
    if (attribute === undefined) return null;
    const { relation, column, filter } = attribute;
    if (relation.connector !== this.#connector)
      throw new Inexpressible(`attribute \`${name}\` is read from connector \`${relation.connector}\``);
    const needs = callerAttributesOf(filter, this);
    if (!this.#functions.has(name)) this.#functions.set(name, this.#function(attribute));
    return { call: `${EXPORT_SCHEMA}.${quoteIdentifier(name)}()`, exists: column === null, needs };
  }

  #function({ name, relation, column, type, filter }: TableAttribute): ReadingFunction {
    const rows = conditionSql(filter, this);
    const from = `from ${tableSql(relation)} where ${rows}`;
    if (column === null) return { name, returns: 'boolean', body: `select exists (select ${from})` };
    const declared = columnOf(relation, column);
    if (declared === null) throw new Inexpressible(`attribute \`${name}\` is read from a column that is not`);
    const { physical, stored } = declared;
    const value: Expr = { kind: 'base', column: physical, type, ...(stored !== undefined && { stored }) };
    return { name, returns: `setof ${type}`, body: `select ${predicateSql(value, () => '')} ${from}` };
  }
}
