import { Command } from 'commander';
import { version } from '../package-root.js';
import { addAudit } from './commands/audit.js';
import { addCompletion } from './commands/completion.js';
import { addDemo } from './commands/demo.js';
import { addDiff } from './commands/diff.js';
import { addDiscover } from './commands/discover.js';
import { addDoctor } from './commands/doctor.js';
import { addErrors } from './commands/errors.js';
import { addExplain } from './commands/explain.js';
import { addExport } from './commands/export.js';
import { addImport } from './commands/import.js';
import { addIndex } from './commands/index-content.js';
import { addInit } from './commands/init.js';
import { addLineage } from './commands/lineage.js';
import { addMap } from './commands/map.js';
import { addMcp } from './commands/mcp.js';
import { addObjects } from './commands/objects.js';
import { addProxy } from './commands/proxy.js';
import { addPsql } from './commands/psql.js';
import { addPublish } from './commands/publish.js';
import { addQuery } from './commands/query.js';
import { addResolve } from './commands/resolve.js';
import { addRowSecurity } from './commands/row-security.js';
import { addSample } from './commands/sample.js';
import { addSchema } from './commands/schema.js';
import { addScram } from './commands/scram.js';
import { addServe } from './commands/serve.js';
import { addSuggest } from './commands/suggest.js';
import { addToken } from './commands/token.js';
import { addValidate } from './commands/validate.js';

const HELP = `
Exit status: 0 done, 1 refused or failed, 2 usage or configuration, 3 no server answers; audit verify has more.
With --json an error is one JSON object on standard error: {"error": {"message", "hint", "exit", …}}. OSL_DEBUG=1
shows where an error came from.

Examples:
  $ osl demo
  $ osl query --subject user:analyst "select name, version from osl.entities.package limit 5"`;

/**
 * Every command with its arguments and flags.
 *
 * @param formatError how a fault of the command line is written; null: as commander does
 */
export function program(formatError: ((text: string) => string) | null = null): Command {
  const root = new Command('osl')
    .configureOutput(formatError === null ? {} : { outputError: (text, write) => write(formatError(text)) })
    .description('OSL Gateway: governed questions about your data')
    .version(version(), '-V, --version')
    .addHelpText('after', HELP)
    .enablePositionalOptions()
    .exitOverride();
  addServe(root);
  addDemo(root);
  addInit(root);
  addQuery(root);
  addExplain(root);
  addSample(root);
  addSchema(root);
  addMap(root);
  addResolve(root);
  addPsql(root);
  addMcp(root);
  addProxy(root);
  addToken(root);
  addScram(root);
  addValidate(root);
  addDiff(root);
  addDiscover(root);
  addSuggest(root);
  addPublish(root);
  addObjects(root);
  addImport(root);
  addExport(root);
  addIndex(root);
  addAudit(root);
  addLineage(root);
  addRowSecurity(root);
  addDoctor(root);
  addErrors(root);
  addCompletion(root);
  return root;
}
