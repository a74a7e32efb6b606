import type { CatalogSettings } from '../catalog/index.js';
import type { SessionParts } from './session-parts.js';
import type { SessionSettings } from './settings.js';

const IN_FORCE = ['TimeZone', 'DateStyle', 'IntervalStyle'] as const;

const KNOWN = new WeakMap<object, CatalogSettings>();

/** What the catalog's statements find set, made once for each state of the session's settings. */
export function catalogSettings({ settings, processId }: SessionParts): CatalogSettings {
  let known = KNOWN.get(settings.version);
  if (known === undefined) {
    known = describe(settings, processId());
    KNOWN.set(settings.version, known);
  }
  return known;
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
