import { QueryError } from 'osl-compiler';
import { textValuesOf } from './protocol/data-row.js';
import type { Runner } from './runner.js';
import type { UpstreamStatement } from './statement.js';

/** Answers that are remembered, the wrong names among them. */
const REMEMBERED = 1_000;
/** UTF-16 units; Postgres knows none that is longer. */
const LONGEST = 255;
const ASK_MS = 5_000;
const SHOW: UpstreamStatement = {
  sql: `SELECT pg_catalog.current_setting('TimeZone')`,
  parameterOids: [],
  asks: 'rows',
  planMode: 'auto',
  columnOids: [25],
};

/** Asks the upstream what zone a text names, once for each text. */
export function timeZones(runner: Runner): (text: string) => Promise<string | null> {
  const known = new Map<string, string | null>();
  return async (text) => {
    if (text === '' || text.length > LONGEST || text.includes('\0')) return null;
    const found = known.get(text);
    if (found !== undefined) return found;
    const zone = await askUpstream(runner, text);
    if (known.size >= REMEMBERED) known.clear();
    known.set(text, zone);
    return zone;
  };
}

async function askUpstream(runner: Runner, text: string): Promise<string | null> {
  let zone: string | null = null;
  const sink = {
    write(rows: Uint8Array) {
      zone = textValuesOf(rows)[0] ?? null;
    },
  };
  const options = {
    subject: null,
    resultFormats: [],
    maxRows: 0,
    maxBytes: 0,
    timeoutMs: ASK_MS,
    signal: null,
    settings: [['TimeZone', text] as const],
  };
  try {
    await runner.runStatement(SHOW, [], options, sink);
    return zone;
  } catch (error) {
    // Of all that can go wrong, only this says something of the text.
    if (error instanceof QueryError && error.entry === 'unresolvable') return null;
    throw error;
  }
}
