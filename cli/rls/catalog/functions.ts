import { sql } from '../../../src/base/sql.js';
import type { DatabaseFunction, Oid, Volatility } from './catalog.js';
import { type CatalogRow, flagIn, grantsIn, numberIn, textIn, textOrNull, textsIn } from './row.js';

export const FUNCTIONS = sql`
  select p.oid::int8 as id, n.nspname::text as schema, p.proname::text as name,
         pg_catalog.oidvectortypes(p.proargtypes) as arguments,
         (select coalesce(json_agg(name order by place), '[]')
            from unnest(p.proargnames[1:p.pronargs]) with ordinality as a (name, place)) as argument_names, l.lanname::text as language,
         p.provolatile::text as volatility, p.proleakproof as leakproof, p.prosecdef as definer,
         p.proretset as returns_set, p.proisstrict as strict,
         p.proowner::int8 as owner, p.prorettype in ('trigger'::regtype, 'event_trigger'::regtype) as trigger,
         (select x.extname::text from pg_catalog.pg_depend d join pg_catalog.pg_extension x on x.oid = d.refobjid
           where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
             and d.refclassid = 'pg_catalog.pg_extension'::regclass) as extension,
         (select substr(setting, 13) from unnest(p.proconfig) as setting where setting like 'search_path=%') as search_path,
         coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as body,
         pg_catalog.pg_get_function_sqlbody(p.oid) is not null as bound,
         (select coalesce(json_agg(json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type)), '[]')
            from pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a) as grants
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    join pg_catalog.pg_language l on l.oid = p.prolang
   where p.prokind in ('f', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 2, 3, 4`;

export const SYSTEM_FUNCTIONS = sql`
  select p.proname::text as name, max(p.provolatile::text) as volatility
    from pg_catalog.pg_proc p
   where p.pronamespace = 'pg_catalog'::regnamespace and p.provolatile <> 'i'
   group by 1`;

export const BINARY_CASTS = sql`
  select pg_catalog.format_type(c.castsource, null) || '>' || pg_catalog.format_type(c.casttarget, null) as cast
    from pg_catalog.pg_cast c
   where c.castmethod = 'b'`;

/** By the letters of `provolatile`, which ascend with volatility: i, s, v. */
const VOLATILITIES: ReadonlyMap<string, Volatility> = new Map([
  ['i', 'immutable'],
  ['s', 'stable'],
  ['v', 'volatile'],
]);

function volatilityOf(row: CatalogRow): Volatility {
  const volatility = VOLATILITIES.get(textIn(row, 'volatility'));
  if (volatility === undefined) throw new TypeError('unknown volatility of a function');
  return volatility;
}

export function decodeFunctions(rows: readonly CatalogRow[]): ReadonlyMap<Oid, DatabaseFunction> {
  return new Map(
    rows.map((row) => {
      const id = numberIn(row, 'id');
      const decoded: DatabaseFunction = {
        id,
        schema: textIn(row, 'schema'),
        name: textIn(row, 'name'),
        arguments: textIn(row, 'arguments'),
        argumentNames: textsIn(row, 'argument_names'),
        language: textIn(row, 'language'),
        volatility: volatilityOf(row),
        leakproof: flagIn(row, 'leakproof'),
        securityDefiner: flagIn(row, 'definer'),
        owner: numberIn(row, 'owner'),
        extension: textOrNull(row, 'extension'),
        returnsTrigger: flagIn(row, 'trigger'),
        returnsSet: flagIn(row, 'returns_set'),
        strict: flagIn(row, 'strict'),
        searchPath: textOrNull(row, 'search_path'),
        body: textIn(row, 'body'),
        bound: flagIn(row, 'bound'),
        grants: grantsIn(row, 'grants'),
      };
      return [id, decoded];
    }),
  );
}

export function decodeSystemFunctions(rows: readonly CatalogRow[]): ReadonlyMap<string, Volatility> {
  return new Map(rows.map((row) => [textIn(row, 'name'), volatilityOf(row)]));
}

export function decodeBinaryCasts(rows: readonly CatalogRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => textIn(row, 'cast')));
}
