import type { RequestCall } from './call.js';
import type { RequestParts } from './parts.js';
import { respond } from './respond.js';

/** A dashboard of the operator, listed for callers who have one of its roles. It has queries, no values. */
export interface SharedDashboard {
  /** Data roles of the policy. */
  readonly roles: readonly string[];
  /** Content of its file, without the roles. */
  readonly content: Readonly<Record<string, unknown>>;
}

/** Dependencies for listing shared dashboards. */
export interface DashboardParts extends RequestParts {
  /** All shared dashboards, sorted by title. */
  readonly sharedDashboards: () => readonly SharedDashboard[];
}

/** Returns the shared dashboards for the caller's effective roles. @throws the errors of `respond` */
export function listDashboards(
  parts: DashboardParts,
  call: RequestCall,
): Promise<readonly SharedDashboard['content'][]> {
  return respond<readonly SharedDashboard[], readonly SharedDashboard['content'][]>(parts, call, {
    action: 'dashboards',
    bucket: 'schema',
    decide: ({ access: { dataRoles } }) =>
      parts.sharedDashboards().filter(({ roles }) => roles.some((role) => dataRoles.has(role))),
    answer: (decided) => decided.map(({ content }) => content),
  });
}
