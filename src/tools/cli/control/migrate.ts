import { migrate } from '../../../control/index.js';
import { print, printJson } from '../output.js';
import { withControl } from './with-control.js';

export interface MigrateFlags {
  readonly gateway?: readonly string[];
  readonly author?: readonly string[];
  readonly json?: true;
}

export async function runMigrate({ gateway = [], author = [], json }: MigrateFlags): Promise<void> {
  const { ran, stands } = await withControl(({ database }) => migrate(database, { gateway, author }));
  if (json) return printJson({ ran: ran.map(({ number, name }) => ({ number, name })), stands });
  for (const { number, name } of ran) print(`${number}: ${name}`);
  print(`osl_control stands at ${stands}`);
  for (const role of gateway) print(`${role} may serve`);
  for (const role of author) print(`${role} may write policies`);
}
