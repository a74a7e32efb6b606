import { createRoot } from 'react-dom/client';
import { Shell } from './shell/Shell.js';
import { applyTheme, storedTheme } from './shell/theme.js';
import './shell/base.css';
import { refuseMarkup } from './trusted-types.js';

refuseMarkup();
applyTheme(storedTheme());
const root = document.getElementById('console');
if (root !== null) createRoot(root).render(<Shell />);
