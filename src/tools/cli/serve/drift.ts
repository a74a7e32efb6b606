import type { Service } from '../../../service/service.js';
import { type InspectedService, inspectDrift } from './inspect.js';

/** How often it is seen whether a question met a table or column that is gone or another. */
const HEAR_MS = 250;
/** Between two looks, however many questions meet one. */
const REST_MS = 1_000;

/** What a question meets that asks for what the database no longer has, or has otherwise. */
const MET = ['E0525', 'E0526'] as const;

/**
 * Looks each `everyMs`, and soon after a question met something, whether the databases have what the manifest declares:
 * objects go out of service, and come back, without a reload. 0: only a start and a reload look. Gives what ends it.
 */
export function watchDrift(open: InspectedService, everyMs: number): () => void {
  const { service } = open;
  if (everyMs === 0) return () => undefined;
  let lookedAt = performance.now();
  let met = metBy(service);
  let looking = false;
  const look = async (): Promise<void> => {
    const rested = performance.now() - lookedAt;
    const now = metBy(service);
    if (looking || (rested < everyMs && (now === met || rested < REST_MS))) return;
    looking = true;
    met = now;
    try {
      await inspectDrift(open);
    } finally {
      lookedAt = performance.now();
      looking = false;
    }
  };
  const timer = setInterval(
    () => void look().catch((error: unknown) => service.log.error('drift', { error: String(error) })),
    Math.min(HEAR_MS, everyMs),
  ).unref();
  return () => clearInterval(timer);
}

function metBy({ observing: { meters } }: Service): number {
  return MET.reduce((sum, code) => sum + (meters.codes.get(code) ?? 0), 0);
}
