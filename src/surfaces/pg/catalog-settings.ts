import { type CatalogSettings, type CatalogStatement, namesSessions } from '../catalog/index.js';
import type { SessionParts } from './session-parts.js';
import type { SessionSettings } from './settings.js';

const IN_FORCE = ['TimeZone', 'DateStyle', 'IntervalStyle', 'extra_float_digits', 'bytea_output'] as const;

const KNOWN = new WeakMap<object, CatalogSettings>();

/** What the catalog's statements find set, made once for each state of the session's settings. */
function catalogSettings({ settings, processId }: SessionParts): CatalogSettings {
  let known = KNOWN.get(settings.version);
  if (known === undefined) {
    known = describe(settings, processId());
    KNOWN.set(settings.version, known);
  }
  return known;
}

/** UTF-16 units of a text of what the session keeps. */
const LONGEST = 1_024;

/** The same for a statement of this text, with the caller's own sessions, and what this one keeps, where it can ask for them. */
export async function settingsFor(session: SessionParts, text: string): Promise<CatalogSettings> {
  const known = catalogSettings(session);
  if (!namesSessions(text)) return known;
  const cursors = session.cursors.list().map((c) => ({ ...c, text: c.text.slice(0, LONGEST) }));
  const kept = { sessions: await session.own.all(), cursors, statements: statementsOf(session) };
  return { ...known, told: `${known.told.slice(0, -1)},${JSON.stringify(kept).slice(1)}` };
}

function statementsOf({ statements }: SessionParts): readonly CatalogStatement[] {
  return statements.statements().map(({ name, text, preparedAt, fromSql, statement }) => ({
    name,
    text: text.slice(0, LONGEST),
    prepared: preparedAt,
    parameters: statement.parameterTypes,
    results: statement.columns?.map((c) => c.typeOid) ?? null,
    fromSql,
  }));
}

function describe(settings: SessionSettings, pid: number): CatalogSettings {
  const byName = settings
    .all()
    .map((s) => [s.name.toLowerCase(), [s.value, s.kept, s.atStart, s.byDefault]] as const);
  return Object.freeze({
    told: JSON.stringify({ pid, settings: Object.fromEntries(byName) }),
    inForce: IN_FORCE.map((name) => [name, settings.show(name).value] as const),
  });
}
