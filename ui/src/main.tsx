// Starts the pages.

import { render } from "preact";
import { App } from "./app.js";
import { load, show } from "./settings.js";
import "./style.css";

show(load());
const page = document.getElementById("page");
if (page) render(<App />, page);
