import { type CatalogSession, type CatalogSettings, namesSessions } from '../catalog/index.js';
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

/** The same for a statement of this text, with the caller's own sessions where it can ask for them. */
export async function settingsFor(session: SessionParts, text: string): Promise<CatalogSettings> {
  const known = catalogSettings(session);
  if (!namesSessions(text)) return known;
  const sessions: readonly CatalogSession[] = await session.own.all();
  return { ...known, told: `${known.told.slice(0, -1)},"sessions":${JSON.stringify(sessions)}}` };
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
