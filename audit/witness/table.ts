import { connectTable, type TableSession, type TableUrl } from '../table/index.js';
import { WITNESS_MS, type Witness } from './witness.js';

/** In the database of a witness; who writes may insert and select. */
export const WITNESS_SCHEMA = `
CREATE SCHEMA osl_witness;
CREATE TABLE osl_witness.checkpoint (
  writer text NOT NULL,
  size bigint NOT NULL,
  note text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (writer, size, at)
);`;

export function witnessGrants(role: string): string {
  return `
GRANT USAGE ON SCHEMA osl_witness TO ${role};
GRANT SELECT, INSERT ON osl_witness.checkpoint TO ${role};`;
}

/** A table of another database. */
export function tableWitness(url: TableUrl): Witness {
  let session: TableSession | null = null;
  const connected = async (): Promise<TableSession> => {
    if (!session?.open) session = await connectTable(url, WITNESS_MS);
    return session;
  };
  return {
    name: 'the witness database',
    keep: async ({ writer, size, note }) => {
      await (await connected()).query(
        'INSERT INTO osl_witness.checkpoint (writer, size, note) VALUES ($1, $2, $3)',
        [writer, size, note],
      );
    },
    kept: async () => {
      const rows = await (await connected()).query('SELECT note FROM osl_witness.checkpoint ORDER BY at');
      return rows.map(({ note }) => String(note));
    },
    close: async () => {
      await session?.end();
    },
  };
}
