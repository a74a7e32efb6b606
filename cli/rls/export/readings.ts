import { columnOf, type Expr, predicateSql, quoteIdentifier, tableSql } from 'osl-compiler';
import type { PolicySnapshot, TableAttribute } from '../../../policy/index.js';
import type { AttributeSources } from './attribute-sources.js';
import { Inexpressible } from './attribute-sources.js';
import {
  callerAttributesOf,
  conditionSql,
  type ExportedAttributes,
  type ReadAttribute,
} from './condition.js';

/** Schema of the functions that an export creates. */
export const EXPORT_SCHEMA = 'osl_export';

/** A function that reads the values of an attribute for the caller. */
export interface ReadingFunction {
  readonly name: string;
  readonly returns: string;
  readonly body: string;
}

/**
 * The attributes of a policy as SQL. Those that are read from entities become functions, which read as the owner of the
 * tables: the gateway reads them without regard to grants, too.
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

  /** Functions that conditions call, each after those that it calls. */
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
