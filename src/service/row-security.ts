import { InternalError } from 'osl-compiler';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { type EngineStatus, surveyPostgres } from '../engine/index.js';
import type { Connector } from '../model/manifest/index.js';
import {
  RightsSigner,
  type RightsSource,
  type RowSecurityDesign,
  type RowSecurityStatus,
  rightsKey,
  rowSecurityOf,
  rowSecurityStatus,
} from '../model/row-security/index.js';
import type { Model } from '../model/served-model.js';
import { connectorUrl } from './connector-url.js';
import type { TenantKeys } from './keys.js';

const MAX_REPORTED_FAULTS = 3;

/** Returns a function that finds a connector's signer of the rights that row security in its database checks. */
export function rightsSigners(
  engines: ReadonlyMap<string, EngineStatus>,
  keys: TenantKeys,
): (connector: string) => RightsSigner {
  const signers = new Map(
    [...engines].map(([name, engine]): [string, RightsSigner] => {
      const version = ({ manifest, snapshot }: RightsSource): string => {
        const connector = manifest.connectors.get(name);
        if (connector === undefined) throw new InternalError(`connector ${name} is not declared`);
        return rowSecurityOf(connector, engine.role, manifest.catalog, snapshot).version;
      };
      return [name, new RightsSigner(rowSecurityKey(keys, name), version)];
    }),
  );
  return (name) => {
    const signer = signers.get(name);
    if (signer === undefined) throw new InternalError(`connector ${name} is not open`);
    return signer;
  };
}

export function rowSecurityKey(keys: TenantKeys, connector: string): Uint8Array {
  return rightsKey(keys.masking, connector);
}

/**
 * Requires that row security in the databases matches the model.
 *
 * @throws StartProblem if it does not match, and an Error if a database does not answer
 */
export async function requireRowSecurity(model: Model, keys: TenantKeys, log: ServiceLog): Promise<void> {
  for (const connector of model.manifest.connectors.values())
    await requireRowSecurityOf(connector, model, keys, log);
}

/** Like `requireRowSecurity`, for one connector. Without a policy, nothing is required. */
export async function requireRowSecurityOf(
  connector: Connector,
  model: Model,
  keys: TenantKeys,
  log: ServiceLog,
): Promise<void> {
  if (!connector.rowSecurity || model.snapshot === null) return;
  for (const { name, relation } of model.snapshot.tableAttributes.values())
    if (relation.connector === connector.name)
      throw new StartProblem(
        `the policy reads attribute \`${name}\` from \`${relation.name}\`, whose connector \`${connector.name}\` has row_security: ` +
          'its policies in the database are not made for such reading. Leave out one of the two',
      );
  const { faults, uncovered } = await checkRowSecurity(connector, model, keys);
  for (const name of uncovered)
    log.warn('row security cannot hold the rows of a view or foreign table', {
      connector: connector.name,
      relation: name,
    });
  if (faults.length === 0) return;
  const moreText =
    faults.length > MAX_REPORTED_FAULTS ? `; and ${faults.length - MAX_REPORTED_FAULTS} more` : '';
  throw new StartProblem(
    `connector \`${connector.name}\` asks for row security, which does not stand as the policy has it: ` +
      `${faults.slice(0, MAX_REPORTED_FAULTS).join('; ')}${moreText}. \`osl row-security --write\` writes it`,
  );
}

/** Compares the row security in the database with that required by `model`. */
export async function checkRowSecurity(
  connector: Connector,
  model: Model,
  keys: TenantKeys,
): Promise<RowSecurityStatus> {
  const url = await connectorUrl(process.env, connector.urlEnv ?? '');
  if (url === null) throw new StartProblem(`connector \`${connector.name}\`: ${connector.urlEnv} is not set`);
  const survey = await surveyPostgres(url);
  try {
    const design = rowSecurityDesign(connector, survey.report.role, model);
    return await rowSecurityStatus(survey.system, design, rowSecurityKey(keys, connector.name));
  } finally {
    survey.close();
  }
}

/** Returns the row security required by `model`. @throws StartProblem without a policy */
export function rowSecurityDesign(
  connector: Connector,
  role: string,
  { manifest, snapshot }: Model,
): RowSecurityDesign {
  if (snapshot === null) throw new StartProblem('row security is written from a policy, and none is loaded');
  return rowSecurityOf(connector, role, manifest.catalog, snapshot);
}
