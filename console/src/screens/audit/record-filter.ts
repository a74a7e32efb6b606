export const SINCE = [
  { name: '15 minutes', ms: 900_000 },
  { name: 'hour', ms: 3_600_000 },
  { name: 'day', ms: 86_400_000 },
  { name: 'week', ms: 604_800_000 },
] as const;

export interface RecordFilter {
  readonly subject: string;
  readonly object: string;
  readonly action: string;
  readonly code: string;
  /** Request ID; if given, all other filters are ignored. */
  readonly request: string;
  readonly decision: '' | 'allow' | 'deny' | 'error';
  readonly kind: '' | 'decision' | 'outcome' | 'event';
  /** Name of a time span in `SINCE`; empty for any time. */
  readonly since: string;
}

export const ALL: RecordFilter = {
  subject: '',
  object: '',
  action: '',
  code: '',
  request: '',
  decision: '',
  kind: 'decision',
  since: '',
};

/** Returns the parameters of the search request. `now` is in ms since the epoch. */
export function searchParameters(filter: RecordFilter, now: number): Readonly<Record<string, string>> {
  const { since, request, ...rest } = filter;
  if (request.trim() !== '') return { request: request.trim() };
  const ms = SINCE.find(({ name }) => name === since)?.ms;
  const trimmed = Object.entries(rest).map(([name, value]) => [name, value.trim()]);
  return {
    ...Object.fromEntries(trimmed),
    ...(ms !== undefined && { since: new Date(now - ms).toISOString() }),
  };
}
