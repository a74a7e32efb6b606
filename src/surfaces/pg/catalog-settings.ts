import type { CatalogSettings } from '../catalog/index.js';
import type { SessionSettings } from './settings.js';

const IN_FORCE = ['TimeZone', 'DateStyle', 'IntervalStyle'] as const;

/** What the catalog's statements find set, made once for each state of `settings`. `pid`: of the BackendKeyData. */
export function catalogSettings(settings: SessionSettings, pid: () => number): () => CatalogSettings {
  let known: { readonly of: object; readonly is: CatalogSettings } | null = null;
  return () => {
    const of = settings.version;
    if (known?.of !== of) known = { of, is: made(settings, pid()) };
    return known.is;
  };
}

function made(settings: SessionSettings, pid: number): CatalogSettings {
  const byName = settings
    .all()
    .map((s) => [s.name.toLowerCase(), [s.value, s.kept, s.atStart, s.byDefault]] as const);
  return Object.freeze({
    told: JSON.stringify({ pid, settings: Object.fromEntries(byName) }),
    inForce: IN_FORCE.map((name) => [name, settings.show(name).value] as const),
  });
}
