import { type RequestCall, type ServedVersions, versionsOf } from '../index.js';
import type { FreshnessView } from './insight.js';
import { type InsightParts, look } from './look.js';

/** How old what serves is, and which versions it is. @throws QueryError E2101, and as `respond` */
export function freshness(
  parts: InsightParts,
  call: RequestCall,
): Promise<FreshnessView & { readonly versions: ServedVersions }> {
  return look(parts, call, 'admin_show', async (caller) => ({
    ...(await parts.insight.freshness()),
    versions: versionsOf(caller),
  }));
}
