import { activations, policyVersions } from '../../../control/index.js';
import type { PolicyFlags } from '../commands/policy/flags.js';
import { withControl } from '../control/with-control.js';
import { print, printJson, terminalWidth } from '../output.js';
import { formatTable, textColumns } from '../table.js';
import { tenantFor } from './ground.js';

export function runHistory(flags: PolicyFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const tenant = await tenantFor(database, flags);
    const versions = await policyVersions(database, tenant);
    const served = await activations(database, tenant);
    if (flags.json) {
      printJson({ tenant, versions, activations: served });
      return;
    }
    const [serves] = served;
    const rows = versions.map(({ number, digest, parent, author, login, at, comment }) => [
      `${number}${serves?.version === number ? ' *' : ''}`,
      at,
      author,
      login,
      digest.slice(0, 12),
      parent === null ? null : String(parent),
      comment,
    ]);
    print(formatTable(textColumns(VERSION_COLUMNS), rows, terminalWidth()));
    print('');
    const times = served.map(({ number, version, action, author, login, at, comment }) => [
      String(number),
      at,
      `${action} ${version}`,
      author,
      login,
      comment,
    ]);
    print(formatTable(textColumns(ACTIVATION_COLUMNS), times, terminalWidth()));
  });
}

const VERSION_COLUMNS = ['version', 'at', 'author', 'login', 'digest', 'parent', 'comment'];
const ACTIVATION_COLUMNS = ['activation', 'at', 'what', 'author', 'login', 'comment'];
