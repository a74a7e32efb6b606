import { directorySource, type LogSource } from '../../../audit/index.js';
import type { LogPlace } from './messages.js';

const STATEMENT_MS = 60_000;

export interface NamedSource {
  readonly name: string;
  readonly source: LogSource;
}

/** Opens the chains of a log, in files or a table, for `work`. */
export async function withChains<T>(
  place: LogPlace,
  work: (chains: readonly NamedSource[]) => Promise<T>,
): Promise<T> {
  if (place.kind === 'files')
    return work(place.chains.map(({ name, dir }) => ({ name, source: directorySource(dir) })));
  const { connectTable, tableSource, writersIn } = await import('../../../audit/table/index.js');
  const session = await connectTable(() => place.url, STATEMENT_MS);
  try {
    const writers = await writersIn(session);
    return await work(writers.map((name) => ({ name, source: tableSource(session, name) })));
  } finally {
    await session.end();
  }
}
