import type { PreparedStatements, PreparedUpstream } from './prepared.js';
import type { FrontendEncoder } from './protocol/encoder.js';
import type { BoundValue, StatementSettings } from './statement.js';

/**
 * How settings are applied to one statement. `function`: by `set_config`. `command`: by SET LOCAL, for governed roles
 * without `set_config`; a native server would log a warning for each.
 */
export type SettingForm = 'function' | 'command';

/** Statements sent ahead of a statement: number of their CommandComplete messages, and the prepared one. */
export interface SentPreamble {
  readonly completions: number;
  readonly sql: string;
  readonly prepared: PreparedUpstream | null;
}

/**
 * Appends statements that apply `settings` up to the next Sync. The caller's statement must be sent before that Sync:
 * together they are one transaction, whose end reverts the settings and whose failure skips the statement.
 */
export function applySettings(
  out: FrontendEncoder,
  prepared: PreparedStatements,
  settings: StatementSettings,
  form: SettingForm,
): SentPreamble {
  if (form === 'command') {
    for (const [name, value] of settings) {
      out.parse('', `SET LOCAL ${name} TO '${value.replaceAll("'", "''")}'`, []);
      out.bind('', [], []);
      out.execute(0);
    }
    return { completions: settings.length, sql: '', prepared: null };
  }
  const calls = settings.map(([name], i) => `pg_catalog.set_config('${name}', $${i + 1}, true)`);
  const sql = `SELECT ${calls.join(', ')}`;
  const oids = settings.map(() => TEXT);
  const statement = prepared.find(sql) ?? prepared.prepare(out, sql, oids);
  out.bind(statement.name, settings.map(boundValue), []);
  out.execute(0);
  return { completions: 1, sql, prepared: statement };
}

const TEXT = 25;

function boundValue([, value]: StatementSettings[number]): BoundValue {
  return { format: 0, bytes: Buffer.from(value, 'utf8') };
}
