export type { DemoProgress } from './load.js';
export { ensureDemo, isLoaded, loadDemo } from './load.js';
export { lockFingerprint } from './lock.js';
export { readSupplyChain } from './read.js';
export type {
  CreditRow,
  DependencyRow,
  DocumentRow,
  LicenseClass,
  OnProgress,
  PackageRow,
  PersonRow,
  SupplyChain,
} from './rows.js';

export { DemoProblem } from './rows.js';
