import type { ColumnDescription, Portal, WireNotice, WireStatement } from '../../../wire/index.js';
import { dataRow } from '../../engine/index.js';

export interface CommandResult {
  readonly tag: string;
  readonly rows?: readonly (readonly string[])[];
  readonly notices?: readonly WireNotice[];
}

export function textColumn(name: string): ColumnDescription {
  return { name, typeOid: 25, typeLength: -1, typeModifier: -1 };
}

/** Statement that the gateway answers itself. `columns` is null if it returns no rows. */
export function commandStatement(
  columns: readonly ColumnDescription[] | null,
  run: () => Promise<CommandResult>,
): WireStatement {
  return {
    parameterTypes: [],
    columns,
    open: () => commandPortal(run),
  };
}

function commandPortal(run: () => Promise<CommandResult>): Portal {
  return {
    async fetch(_maxRows, rows) {
      const { tag, rows: values = [], notices = [] } = await run();
      for (const row of values) await rows.write(dataRow(row));
      return { suspended: false, tag, notices };
    },
    close: () => undefined,
  };
}
