export { Operations as Screen } from './Operations.js';
