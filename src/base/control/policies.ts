import { createHash } from 'node:crypto';
import { sql } from '../sql.js';
import type { ControlDatabase, ControlQueries, ResultRow } from './database.js';

/** A pushed policy text. For each tenant, `number` starts at 1. */
export interface PolicyVersion {
  readonly number: number;
  /** SHA-256 of the UTF-8 text, in hex. */
  readonly digest: string;
  /** The version that was active when this one was pushed; null if none was. */
  readonly parent: number | null;
  readonly author: string;
  readonly comment: string | null;
  /** Login name of the database session that wrote the row. */
  readonly login: string;
  /** Time in RFC 3339 and UTC, by the database's clock. */
  readonly at: string;
}

/** Records that a version became active. The activation with the highest number is in force. */
export interface Activation extends Omit<PolicyVersion, 'digest' | 'parent'> {
  readonly version: number;
  readonly action: 'activate' | 'rollback';
  /** Number of the newest published version that the policy was checked against; 0 for none. */
  readonly published: number;
}

export interface ActivePolicy {
  readonly activation: number;
  readonly version: number;
  readonly digest: string;
  readonly text: string;
}

/** The state was changed concurrently and must be read again. */
export class ControlConflict extends Error {
  override readonly name = 'ControlConflict';
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Lists policy versions, newest first. @throws ControlFault */
export async function policyVersions(
  control: ControlQueries,
  tenant: string,
): Promise<readonly PolicyVersion[]> {
  const rows = await control.query(
    sql`select number, digest, parent, author, comment, login, ${AT} from osl_control.policy_version
     where tenant = $1 order by number desc`,
    [tenant],
  );
  return rows.map(versionIn);
}

/** Lists activations, newest first. @throws ControlFault */
export async function activations(control: ControlQueries, tenant: string): Promise<readonly Activation[]> {
  const rows = await control.query(
    sql`select number, version, action, author, comment, published, login, ${AT}
     from osl_control.policy_activation where tenant = $1 order by number desc`,
    [tenant],
  );
  return rows.map((row) => ({
    ...writtenBy(row),
    version: Number(row['version']),
    action: row['action'] === 'rollback' ? 'rollback' : 'activate',
    published: Number(row['published']),
  }));
}

/** Returns the text of a version; null if it does not exist. @throws ControlFault */
export async function policyText(
  control: ControlQueries,
  tenant: string,
  number: number,
): Promise<string | null> {
  const [row] = await control.query(
    sql`select text from osl_control.policy_version where tenant = $1 and number = $2`,
    [tenant, number],
  );
  return row === undefined ? null : String(row['text']);
}

/**
 * Returns the active policy; null if there is none. @throws ControlFault; ControlConflict if the text does not match
 * the digest
 */
export async function activePolicy(control: ControlQueries, tenant: string): Promise<ActivePolicy | null> {
  const [row] = await control.query(
    sql`select a.number as activation, v.number as version, v.digest, v.text
     from osl_control.policy_activation a
     join osl_control.policy_version v on v.tenant = a.tenant and v.number = a.version
     where a.tenant = $1 order by a.number desc limit 1`,
    [tenant],
  );
  if (row === undefined) return null;
  const text = String(row['text']);
  if (digestOf(text) !== row['digest'])
    throw new ControlConflict(`policy version ${Number(row['version'])} is not the text that was pushed`);
  return {
    activation: Number(row['activation']),
    version: Number(row['version']),
    digest: digestOf(text),
    text,
  };
}

export interface Authorship {
  readonly author: string;
  readonly comment: string | null;
}

/** Stores a text as the next version, unless it equals the text of the newest version. @throws ControlFault */
export function pushPolicy(
  database: ControlDatabase,
  tenant: string,
  text: string,
  { author, comment }: Authorship,
): Promise<{ readonly number: number; readonly added: boolean }> {
  const digest = digestOf(text);
  return database.transaction(`policy ${tenant}`, async (tx) => {
    const [newest] = await policyVersions(tx, tenant);
    if (newest?.digest === digest) return { number: newest.number, added: false };
    const serves = await activePolicy(tx, tenant);
    const number = (newest?.number ?? 0) + 1;
    await tx.query(
      sql`insert into osl_control.policy_version (tenant, number, digest, parent, text, author, comment)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [tenant, number, digest, serves?.version ?? null, text, author, comment],
    );
    return { number, added: true };
  });
}

/** State of a tenant: the numbers of the activation in force and of the newest published version; 0 if none. */
export interface ActivationBase {
  readonly activation: number;
  readonly published: number;
}

/**
 * Activates a version; gateways are notified on commit.
 *
 * @throws ControlConflict if `seen` is out of date; ControlFault
 */
export function activatePolicy(
  database: ControlDatabase,
  tenant: string,
  { version, action, ...by }: Pick<Activation, 'version' | 'action'> & Authorship,
  seen: ActivationBase,
): Promise<number> {
  return database.transaction(`policy ${tenant}`, async (tx) => {
    const now = await controlVersions(tx, tenant);
    if (now.activation !== seen.activation)
      throw new ControlConflict(
        'another policy was activated meanwhile: look at what changed, and try again',
      );
    if (now.published !== seen.published)
      throw new ControlConflict(
        'another version was published meanwhile: look at what changed, and try again',
      );
    const number = now.activation + 1;
    await tx.query(
      sql`insert into osl_control.policy_activation (tenant, number, version, action, author, comment, published)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [tenant, number, version, action, by.author, by.comment, seen.published],
    );
    return number;
  });
}

/** Returns the current state of a tenant. @throws ControlFault */
export async function controlVersions(control: ControlQueries, tenant: string): Promise<ActivationBase> {
  const [row] = await control.query(
    sql`select (select coalesce(max(number), 0) from osl_control.policy_activation where tenant = $1) as activation,
            (select coalesce(max(number), 0) from osl_control.published_version where tenant = $1) as published`,
    [tenant],
  );
  return { activation: Number(row?.['activation']), published: Number(row?.['published']) };
}

/** Lists the tenants that have a policy or a published version. @throws ControlFault */
export async function tenantsIn(control: ControlQueries): Promise<readonly string[]> {
  const rows = await control.query(
    sql`select tenant from osl_control.policy_version union select tenant from osl_control.published_version
     order by 1`,
  );
  return rows.map((row) => String(row['tenant']));
}

const AT = sql`to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at`;

function versionIn(row: ResultRow): PolicyVersion {
  const { parent } = row;
  return {
    ...writtenBy(row),
    digest: String(row['digest']),
    parent: parent === null ? null : Number(parent),
  };
}

function writtenBy(row: ResultRow): Pick<PolicyVersion, 'number' | 'author' | 'comment' | 'login' | 'at'> {
  const { number, author, comment, login, at } = row;
  return {
    number: Number(number),
    author: String(author),
    comment: comment === null ? null : String(comment),
    login: String(login),
    at: String(at),
  };
}
