export { Audit as Screen } from './Audit.js';
