/** The rooms that full names of objects begin with: `osl.entities.person`, `osl.facets.readme`, `osl.metrics.revenue`. */
export type Room = 'entities' | 'facets' | 'metrics';

/** `osl.metrics.revenue` of `revenue`. */
export function fullName(room: Room, name: string): string {
  return `osl.${room}.${name}`;
}

/** The name alone, where it was written in full; no name of an object has a dot in it. */
export function plainName(room: Room, written: string): string {
  const lead = `osl.${room}.`;
  return written.startsWith(lead) ? written.slice(lead.length) : written;
}
