import { gatewayGrants, maintenanceGrants, readerGrants, SCHEMA } from '../../../audit-table/index.js';
import { WITNESS_SCHEMA, witnessGrants } from '../../../witness/index.js';
import { print } from '../output.js';

export interface TableSqlFlags {
  readonly gateway: string;
  readonly reader?: string;
  readonly maintenance?: string;
}

export function runTableSql({ gateway, reader, maintenance }: TableSqlFlags): void {
  const grants = [
    gatewayGrants(quoted(gateway)),
    ...(reader === undefined ? [] : [readerGrants(quoted(reader))]),
    ...(maintenance === undefined ? [] : [maintenanceGrants(quoted(maintenance))]),
  ];
  print(`${SCHEMA}${grants.join('')}`.trim());
}

export function runWitnessSql({ gateway }: Pick<TableSqlFlags, 'gateway'>): void {
  print(`${WITNESS_SCHEMA}${witnessGrants(quoted(gateway))}`.trim());
}

function quoted(role: string): string {
  return `"${role.replaceAll('"', '""')}"`;
}
