import { InternalError } from 'osl-compiler';
import { generatedSql, type Sql, sql, sqlName, sqlText } from '../../base/sql.js';
import { governedSettings } from '../settings.js';
import { queriesOn } from '../system.js';
import type { UpstreamSession } from '../upstream-session.js';

/** The unprivileged role that runs governed statements in the embedded server. */
export const READER = 'osl_reader';
const OWNER = 'postgres';

/**
 * Creates the governed role and the extension, and revokes privileges granted to PUBLIC.
 *
 * Without `set_config`, no expression can leave the role again. With it, the embedded server would allow that, since
 * its only session was authenticated as superuser.
 */
const PREPARE = sql`
  DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = ${sqlText(READER)}) THEN CREATE ROLE ${sqlName(READER)}; END IF;
  END $$;
  ALTER ROLE ${sqlName(READER)} NOSUPERUSER NOBYPASSRLS NOREPLICATION NOCREATEDB NOCREATEROLE NOLOGIN;
  REVOKE EXECUTE ON FUNCTION pg_catalog.set_config(text, text, boolean) FROM PUBLIC;
  REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC;
  CREATE EXTENSION IF NOT EXISTS vector SCHEMA public`;

/** The embedded server has no timeouts; instead, the execution's deadline ends its thread. */
const SETTINGS = governedSettings({ statementMs: 0, lockMs: 0, idleInTransactionMs: 0 });

const TO_SYSTEM = sql`SET SESSION AUTHORIZATION ${sqlName(OWNER)}; RESET ALL; SET search_path TO public`;
const TO_GOVERNED = sql`SET SESSION AUTHORIZATION ${sqlName(OWNER)}; RESET ALL; DISCARD TEMP; ${generatedSql(SETTINGS)}; SET SESSION AUTHORIZATION ${sqlName(READER)}`;
const CURRENT_ROLE = sql`
  SELECT session_user::pg_catalog.text AS session, current_user::pg_catalog.text AS current,
         pg_catalog.current_setting('is_superuser') AS super,
         pg_catalog.current_setting('default_transaction_read_only') AS readonly`;

/** Tracks which sessions of the embedded server are in governed mode. */
export class SessionModes {
  readonly #governed = new WeakSet<UpstreamSession>();
  readonly #system = new WeakSet<UpstreamSession>();

  /** Sets up a new server. */
  async prepare(session: UpstreamSession): Promise<void> {
    await queriesOn(session).script(PREPARE);
    this.#system.add(session);
  }

  /** Switches `session` to governed mode; null if it is already governed. Rejects if that cannot be verified. */
  toGoverned(session: UpstreamSession): Promise<void> | null {
    return this.#governed.has(session) ? null : this.#switch(session, TO_GOVERNED, this.#governed, READER);
  }

  toSystem(session: UpstreamSession): Promise<void> | null {
    return this.#system.has(session) ? null : this.#switch(session, TO_SYSTEM, this.#system, OWNER);
  }

  async #switch(
    session: UpstreamSession,
    script: Sql,
    target: WeakSet<UpstreamSession>,
    role: string,
  ): Promise<void> {
    // INVARIANT: during a switch, a session is in neither mode, and a failed switch leaves it so.
    this.#governed.delete(session);
    this.#system.delete(session);
    const queries = queriesOn(session);
    await queries.script(script);
    const [row] = await queries.query(CURRENT_ROLE);
    const isReader = role === READER;
    const isAsExpected =
      row?.['session'] === role &&
      row['current'] === role &&
      row['super'] === (isReader ? 'off' : 'on') &&
      row['readonly'] === (isReader ? 'on' : 'off');
    if (!isAsExpected || !session.idle)
      throw new InternalError(`the embedded session did not become ${role}`);
    target.add(session);
  }
}
