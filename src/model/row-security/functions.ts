import { quoteLiteral } from 'osl-compiler';
import { RIGHTS_FAULTS, type RightsSetting } from '../../engine/index.js';

/** Schema of the objects that `osl row-security` creates. */
export const SCHEMA = 'osl_row_security';
/** Setting that holds the rights of a statement's caller. */
export const SETTING: RightsSetting = 'osl.rights';

/** A call of a function in the schema, written so that it is evaluated once per statement and not once per row. */
export function call(name: string, ...args: readonly string[]): string {
  return `(select ${SCHEMA}.${name}(${args.join(', ')}))`;
}

export function texts(values: readonly string[]): string {
  return `array[${values.map(quoteLiteral).join(', ')}]::text[]`;
}

/** A function in the schema, in a form that can be compared with the installed one. */
export interface GuardFunction {
  readonly name: string;
  readonly parameters: string;
  readonly returns: string;
  readonly body: string;
  /** True if the governed role may call it, as its policies do. */
  readonly open: boolean;
}

/**
 * Returns the rights that the gateway has set for the statement, after checking their signature, version and expiry.
 * The signature is HMAC-SHA-256 computed with stored pads, because core Postgres has no hmac().
 *
 * INVARIANT: any fault makes the statement fail. Treating it as no rights would return too few rows without an error.
 */
const RIGHTS = `
declare
  token text := coalesce(current_setting('${SETTING}', true), '');
  body text := substr(token, 65);
  state ${SCHEMA}.state;
  said jsonb;
begin
  if token = '' then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.missing}';
  end if;
  select * into strict state from ${SCHEMA}.state;
  if left(token, 64) <> encode(
       sha256(state.outer_pad || sha256(state.inner_pad || convert_to(body, 'UTF8'))), 'hex') then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.forged}';
  end if;
  said := body::jsonb;
  if said->>'version' <> state.version then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.outdated}';
  end if;
  if (said->>'ends')::float8 < extract(epoch from now()) then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.ended}';
  end if;
  return said;
end`;

const GRANTED = `
declare
  said jsonb := ${SCHEMA}.rights();
begin
  return said->'roles' ?| roles
     and jsonb_array_length(said->'chain') > 0
     and not exists (select from jsonb_array_elements(said->'chain') subject where not subject ?& needs);
end`;

const DENIED = `
begin
  return ${SCHEMA}.rights()->'denying' ?| roles;
end`;

const BEYOND = `
begin
  return jsonb_array_length(${SCHEMA}.rights()->'chain') <= place;
end`;

const UNBOUND = `
declare
  said jsonb := ${SCHEMA}.rights();
begin
  return not exists (
    select from jsonb_array_elements(said->'chain') with ordinality subject(of, n)
     where (place is null or n = place + 1) and subject.of->attribute <> 'true');
end`;

/** Body of `shared`: the attribute values that all subjects in the chain share, compared in the type of `kind`. */
const SHARED = `
declare
  said jsonb := ${SCHEMA}.rights();
  held jsonb;
  own kind%type;
  common kind%type;
begin
  for held in
    select subject.of->attribute from jsonb_array_elements(said->'chain') with ordinality subject(of, n)
     where (place is null or n = place + 1) and subject.of->attribute <> 'true'
  loop
    own := array(select jsonb_array_elements_text(held));
    if common is null then
      common := own;
    else
      common := array(select unnest(common) intersect select unnest(own));
    end if;
  end loop;
  return common;
end`;

export const FUNCTIONS: readonly GuardFunction[] = [
  { name: 'rights', parameters: '', returns: 'jsonb', body: RIGHTS, open: false },
  {
    name: 'granted',
    parameters: 'roles text[], needs text[]',
    returns: 'boolean',
    body: GRANTED,
    open: true,
  },
  { name: 'denied', parameters: 'roles text[]', returns: 'boolean', body: DENIED, open: true },
  { name: 'beyond', parameters: 'place int4', returns: 'boolean', body: BEYOND, open: true },
  {
    name: 'unbound',
    parameters: 'attribute text, place int4',
    returns: 'boolean',
    body: UNBOUND,
    open: true,
  },
  {
    name: 'shared',
    parameters: 'attribute text, place int4, kind anyarray',
    returns: 'anyarray',
    body: SHARED,
    open: true,
  },
];

/**
 * INVARIANT: each function runs as its owner, the only role that can read the key, and resolves names only in
 * `pg_catalog`.
 */
export function functionSql({ name, parameters, returns, body }: GuardFunction): string {
  return `create function ${SCHEMA}.${name}(${parameters}) returns ${returns}
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $osl$${body}$osl$`;
}
