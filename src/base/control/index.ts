/** State that several gateways share, in the schema `osl_control` of one Postgres. */
export {
  type ControlDatabase,
  type ControlQueries,
  openControl,
} from './database.js';
export { ControlFault } from './fault.js';
export { migrate, requireSchema } from './migrate.js';
export { MIGRATIONS } from './migrations.js';
export {
  type Activation,
  type ActivationBase,
  type ActivePolicy,
  type Authorship,
  activatePolicy,
  activations,
  activePolicy,
  ControlConflict,
  policyText,
  policyVersions,
  pushPolicy,
  standing,
  tenantsIn,
} from './policies.js';
export { isSharedKey, publishedAfter, publishedId, shareVersions } from './published.js';
export { lastRevocation, revokedAfter, shareRevocation } from './revocations.js';
export { listenForChanges } from './signals.js';
export { type ControlPlace, controlUrl } from './url.js';
